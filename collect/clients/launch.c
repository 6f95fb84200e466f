/* launch: starts a server in control groups; runs a load generator and measures the server from
 * outside.
 *
 * usage:
 *   launch server [--join FILE]... [--processors LIST] -- COMMAND...
 *   launch load --server PID [OPTION]... -- COMMAND...
 *   launch memory --server PID
 * examples:
 *   launch server --join /sys/fs/cgroup/cpuacct/x/cgroup.procs --processors 0 -- ./fork_server 0
 *   launch load --server 4711 --cpu /sys/fs/cgroup/cpuacct/x/cpuacct.usage -- ab -n 9 URL
 *
 * `server` joins the control groups, binds itself to the processors, and becomes COMMAND in a new
 * process group that ends with its parent.
 *
 * `load` runs COMMAND and writes one line to standard output, or to the file --result:
 *   seconds load_cpu_seconds exit server_cpu_us voluntary involuntary faults peak_kib
 *   first_tenth alive user_us system_us grown_user_kib grown_kib
 *   disk_kib
 * with `-` for what could not be measured; exit is the status of COMMAND, 128 plus the number of a
 * signal, `timeout`, or `stopped`: by SIGINT or SIGTERM, or because there is a file --stop.
 *
 * `memory` prints the proportional set size of the server's tree now, without pages of files, in
 * KiB.
 *
 * How each number is measured, best way first; the same way for every server:
 *
 * CPU: the usage counter of the server's control group (cpuacct of cgroup v1, cpu.stat of v2) in
 * nanoseconds or microseconds, which counts all that ever ran in the group. Without a group: the
 * process clocks of the living tree, in nanoseconds, and the times of reaped children in
 * /proc/PID/stat, which come in ticks of 10 ms; for a server that forks, a short run is therefore
 * uncertain by some 10 ms, without a bias. The tree is that of the server, and of the other
 * processes of its process group, such as those that sign for it.
 *
 * User and system time: the CPU time of the server's control group, divided as the kernel's clock
 * has seen it at its ticks; `-` without a group.
 *
 * Switches: the kernel shows those of living threads only (/proc/PID/task/TID/status), so that they
 * are `-` for servers whose threads or processes come and go: the study counts their switches when
 * the server has ended. Faults: those of the processes, and of the children that they have waited
 * for.
 *
 * Grown: by how much the memory of the server grew until the load sent SIGUSR1, which says that its
 * connections are open: first the proportional set size; then, with --current, the memory of the
 * control group, with what the kernel charges for connections. CPU, switches, faults and disk count
 * from that signal on. A load that does not send it needs no --grown, and has `-`.
 *
 * Disk: what the machine has read from its disks meanwhile, others included.
 *
 * First tenth: the rate at which the first tenth of the connections was accepted, divided by that
 * of the rest (the kernel counts them for the network namespace); `-` for short runs.
 *
 * Memory: the peak of the server's control group, with page tables, kernel stacks and page cache,
 * as the kernel charges it, in steps of up to 256 KiB a processor. Without a group: the largest of
 * the sampled proportional set sizes (PSS) of the tree, which misses kernel memory and short peaks.
 * PSS leaves out pages of files: all processes that run a program share them, so the share of each
 * would change when another one starts or ends.
 */
#include "first_tenth_rate.h"
#include "tool.h"

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TREE_MOST = 4096,
    JOINS_MOST = 8,
    PATH_BYTES = 512,
    MESSAGE_BYTES = 64 * 1024,
    /* A counter that does not change in this many reads, 2 ms apart, has seen the last scheduler
       tick. */
    QUIET_LOOKS = 3,
    QUIET_LOOKS_MOST = 60,
    BORN_FEW = 8
};

struct options {
    const char *join[JOINS_MOST];
    int joins;
    const char *processors, *cpu, *peak, *current, *result, *stop;
    pid_t server;
    double timeout;
    bool grown; /* the load says when its connections are open */
};

struct tree {
    pid_t pids[TREE_MOST];
    int count;
};

struct switches {
    long long voluntary, involuntary;
};

/* Time in user mode and in the kernel, in any unit. */
struct modes {
    double user, system;
};

static void pause_for(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* ---- small files ---- */

static ssize_t file_read(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t length = read(file, text, size - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

static bool file_write(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t written = write(file, text, strlen(text));
    close(file);
    return written == (ssize_t)strlen(text);
}

static long long field_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

/* ---- the process tree of the server ---- */

/* Calls `each` for every thread of the process. */
static void each_thread(pid_t pid, void (*each)(pid_t pid, const char *thread, void *argument),
                        void *argument)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            each(pid, entry->d_name, argument);
    closedir(folder);
}

static void tree_add(struct tree *tree, pid_t pid);

static void add_children(pid_t pid, const char *thread, void *tree)
{
    char path[PATH_BYTES], children[MESSAGE_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", (int)pid, thread);
    if (file_read(path, children, sizeof(children)) <= 0)
        return;
    char *at = children, *end;
    for (long child; (child = strtol(at, &end, 10)) > 0; at = end)
        tree_add(tree, (pid_t)child);
}

static void tree_add(struct tree *tree, pid_t pid)
{
    if (tree->count == TREE_MOST)
        return;
    tree->pids[tree->count++] = pid;
    each_thread(pid, add_children, tree);
}

static double tree_cpu(const struct tree *tree)
{
    double seconds = 0;
    for (int i = 0; i < tree->count; i++) {
        clockid_t clock;
        struct timespec time;
        char path[PATH_BYTES], text[PATH_BYTES * 2];
        long long reaped_user = 0, reaped_system = 0;
        if (clock_getcpuclockid(tree->pids[i], &clock) == 0 && clock_gettime(clock, &time) == 0)
            seconds += (double)time.tv_sec + (double)time.tv_nsec / 1e9;
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)tree->pids[i]);
        if (file_read(path, text, sizeof(text)) <= 0)
            continue;
        const char *fields = strrchr(text, ')');
        if (fields &&
            sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %lld %lld",
                   &reaped_user, &reaped_system) == 2)
            seconds += (double)(reaped_user + reaped_system) / (double)sysconf(_SC_CLK_TCK);
    }
    return seconds;
}

/* Minor page faults of the processes and of their reaped children. */
static long long tree_faults(const struct tree *tree)
{
    long long sum = 0;
    for (int i = 0; i < tree->count; i++) {
        char path[PATH_BYTES], text[PATH_BYTES * 2];
        long long own = 0, reaped = 0;
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)tree->pids[i]);
        if (file_read(path, text, sizeof(text)) <= 0)
            continue;
        const char *fields = strrchr(text, ')');
        if (fields && sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %lld %lld", &own, &reaped) == 2)
            sum += own + reaped;
    }
    return sum;
}

static double tree_memory(const struct tree *tree)
{
    long long kib = 0;
    for (int i = 0; i < tree->count; i++) {
        char path[PATH_BYTES], text[PATH_BYTES * 4];
        snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)tree->pids[i]);
        if (file_read(path, text, sizeof(text)) > 0)
            kib += field_after(text, "\nPss:") - field_after(text, "\nPss_File:");
    }
    return (double)kib * 1024;
}

static void add_switches(pid_t pid, const char *thread, void *argument)
{
    struct switches *sum = argument;
    char path[PATH_BYTES], text[PATH_BYTES * 8];
    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)pid, thread);
    if (file_read(path, text, sizeof(text)) <= 0)
        return;
    sum->voluntary += field_after(text, "\nvoluntary_ctxt_switches:");
    sum->involuntary += field_after(text, "nonvoluntary_ctxt_switches:");
}

static struct switches tree_switches(const struct tree *tree)
{
    struct switches sum = {0, 0};
    for (int i = 0; i < tree->count; i++)
        each_thread(tree->pids[i], add_switches, &sum);
    return sum;
}

/* A process that ends closes its sockets, so that its clients know, before it counts as a zombie.
 */
static bool alive(pid_t pid)
{
    const unsigned long exiting = 0x4; /* the kernel's PF_EXITING */
    char path[PATH_BYTES], text[PATH_BYTES * 2], state;
    unsigned long flags;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (file_read(path, text, sizeof(text)) <= 0)
        return false;
    const char *behind_name = strrchr(text, ')');
    return behind_name &&
           sscanf(behind_name, ") %c %*d %*d %*d %*d %*d %lu", &state, &flags) == 2 &&
           state != 'Z' && state != 'X' && !(flags & exiting);
}

static bool tree_holds(const struct tree *tree, pid_t pid)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->pids[i] == pid)
            return true;
    return false;
}

static pid_t process_group(const char *pid)
{
    char path[PATH_BYTES], text[PATH_BYTES * 2];
    int group = -1;
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    if (file_read(path, text, sizeof(text)) <= 0)
        return -1;
    const char *fields = strrchr(text, ')');
    return fields && sscanf(fields, ") %*c %*d %d", &group) == 1 ? group : -1;
}

/* Reads the tree of a server, and of the other processes of the group that it leads. */
static void tree_read(struct tree *tree, pid_t server)
{
    tree->count = 0;
    tree_add(tree, server);
    DIR *folder = opendir("/proc");
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && process_group(entry->d_name) == server && !tree_holds(tree, pid))
            tree_add(tree, pid);
    }
    closedir(folder);
}

/* ---- counters of a control group ---- */

static double group_cpu(const char *path)
{
    char text[PATH_BYTES * 4];
    if (file_read(path, text, sizeof(text)) <= 0)
        err(1, "cannot read %s", path);
    if (strstr(text, "usage_usec"))
        return (double)field_after(text, "usage_usec") / 1e6;
    return (double)strtoll(text, NULL, 10) / 1e9;
}

/* Reads the time that a control group spent in user mode and in the kernel. The files of cgroup v1
 * have the name of its usage counter, and a suffix. */
static struct modes group_modes(const char *path)
{
    char text[PATH_BYTES * 4], user[PATH_BYTES], system[PATH_BYTES];
    if (file_read(path, text, sizeof(text)) > 0 && strstr(text, "usage_usec"))
        return (struct modes){(double)field_after(text, "user_usec"),
                              (double)field_after(text, "system_usec")};
    snprintf(user, sizeof(user), "%s_user", path);
    snprintf(system, sizeof(system), "%s_sys", path);
    struct modes modes = {0, 0};
    if (file_read(user, text, sizeof(text)) > 0)
        modes.user = (double)strtoll(text, NULL, 10);
    if (file_read(system, text, sizeof(text)) > 0)
        modes.system = (double)strtoll(text, NULL, 10);
    return modes;
}

static double group_bytes(int file)
{
    char text[64] = "";
    return pread(file, text, sizeof(text) - 1, 0) > 0 ? (double)strtoll(text, NULL, 10) : 0;
}

/* ---- a run ---- */

struct watch {
    const struct options *options;
    struct tree tree;
    struct switches before;
    long long faults, disk;
    int created;
    double cpu;
    struct modes modes;
    double user_memory, group_memory; /* before the load */
    double grown_user, grown;         /* until its connections were open; -1: it did not say */
    /* The peak counter, if it could be reset; otherwise the memory is sampled. */
    int peak_file, current_file;
    double peak;
    double next_sample;
    struct first_tenth rates;
};

/* Returns the id of the youngest process: two of them tell how many were made in between. */
static int youngest(void)
{
    char text[128];
    if (file_read("/proc/loadavg", text, sizeof(text)) <= 0)
        return 0;
    const char *last = strrchr(text, ' ');
    return last ? atoi(last) : 0;
}

static double watch_cpu(const struct watch *watch)
{
    return watch->options->cpu ? group_cpu(watch->options->cpu) : tree_cpu(&watch->tree);
}

static int peak_open(const char *path)
{
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    /* A 0 resets cgroup v1, any text v2 (Linux 6.12), for this descriptor only. */
    if (file >= 0 && pwrite(file, "0", 1, 0) != 1) {
        close(file);
        file = -1;
    }
    return file;
}

static void watch_sample(struct watch *watch)
{
    double start = tool_now();
    if (watch->peak_file >= 0 || start < watch->next_sample)
        return;
    double bytes = watch->current_file >= 0 ? group_bytes(watch->current_file) : 0;
    if (watch->current_file < 0) {
        struct tree tree;
        tree_read(&tree, watch->options->server);
        bytes = tree_memory(&tree);
    }
    if (bytes > watch->peak)
        watch->peak = bytes;
    /* Samples may take up to a twentieth of the time. */
    watch->next_sample = start + 0.005 + 20 * (tool_now() - start);
}

/* Returns how many KiB this machine has read from its disks. */
static long long disk_kib(void)
{
    char text[MESSAGE_BYTES];

    return file_read("/proc/vmstat", text, sizeof(text)) > 0 ? field_after(text, "\npgpgin ") : 0;
}

/* Counts from now on. */
static void watch_count(struct watch *watch)
{
    const struct options *options = watch->options;

    tree_read(&watch->tree, options->server);
    watch->before = tree_switches(&watch->tree);
    watch->faults = tree_faults(&watch->tree);
    watch->created = youngest();
    watch->disk = disk_kib();
    if (options->cpu)
        watch->modes = group_modes(options->cpu);
    watch->cpu = watch_cpu(watch);
}

static void watch_begin(struct watch *watch, const struct options *options)
{
    *watch = (struct watch){
        .options = options, .peak_file = -1, .current_file = -1, .grown_user = -1, .grown = -1};
    watch->rates.interval = FIRST_TENTH_SECONDS;
    first_tenth_sample(&watch->rates, tool_now());
    watch->peak_file = peak_open(options->peak);
    if (options->current)
        watch->current_file = open(options->current, O_RDONLY | O_CLOEXEC);
    watch_count(watch);
    if (options->grown) {
        watch->user_memory = tree_memory(&watch->tree);
        watch->group_memory = watch->current_file >= 0 ? group_bytes(watch->current_file) : 0;
    }
}

/* Notes how much the memory has grown, now that the connections of the load are open. */
static void watch_grown(struct watch *watch)
{
    tree_read(&watch->tree, watch->options->server);
    watch->grown_user = tree_memory(&watch->tree) - watch->user_memory;
    if (watch->current_file >= 0)
        watch->grown = group_bytes(watch->current_file) - watch->group_memory;
    watch_count(watch);
}

/* Waits until the last connections have ended: the load generator may have its responses before
 * that, and their cost belongs to this run. */
static void watch_settle(struct watch *watch)
{
    double last = watch_cpu(watch);
    for (int looks = 0, quiet = 0; quiet < QUIET_LOOKS && looks < QUIET_LOOKS_MOST; looks++) {
        pause_for(0.002);
        double next = watch_cpu(watch);
        quiet = next > last ? 0 : quiet + 1;
        last = next;
    }
    watch->cpu = last - watch->cpu;
}

static void print_memory(struct watch *watch, FILE *out)
{
    double peak = watch->peak_file >= 0 ? group_bytes(watch->peak_file) : watch->peak;
    if (peak > 0)
        fprintf(out, " %.0f", peak / 1024);
    else
        fputs(" -", out);
}

static void print_growth(double bytes, FILE *out)
{
    if (bytes >= 0)
        fprintf(out, " %.0f", bytes / 1024);
    else
        fputs(" -", out);
}

static void print_modes(const struct watch *watch, FILE *out)
{
    if (watch->options->cpu) {
        struct modes now = group_modes(watch->options->cpu);
        double user = now.user - watch->modes.user, system = now.system - watch->modes.system;
        if (user + system > 0) {
            double each = watch->cpu * 1e6 / (user + system);
            fprintf(out, " %.3f %.3f", user * each, system * each);
            return;
        }
    }
    fputs(" - -", out);
}

static void print_events(struct watch *watch, FILE *out)
{
    struct tree tree;
    tree_read(&tree, watch->options->server);
    struct switches after = tree_switches(&tree);
    /* The number is right only if hardly any process was made during the sample. */
    int born = youngest() - watch->created;
    if (born >= 0 && born < BORN_FEW)
        fprintf(out, " %lld %lld", after.voluntary - watch->before.voluntary,
                after.involuntary - watch->before.involuntary);
    else
        fputs(" - -", out);
    fprintf(out, " %lld", tree_faults(&tree) - watch->faults);
}

static void watch_end(struct watch *watch, double seconds, const struct rusage *load,
                      const char *exit_text)
{
    watch->rates.interval = 0;
    first_tenth_sample(&watch->rates, tool_now());
    if (watch->peak <= 0)
        watch_sample(watch); /* the load ended before the first one */
    watch_settle(watch);
    FILE *out = watch->options->result ? fopen(watch->options->result, "we") : stdout;
    if (!out)
        err(1, "cannot write %s", watch->options->result);
    double cpu = (double)(load->ru_utime.tv_sec + load->ru_stime.tv_sec) +
                 (double)(load->ru_utime.tv_usec + load->ru_stime.tv_usec) / 1e6;
    bool lives = alive(watch->options->server);
    fprintf(out, "%.6f %.6f %s", seconds, cpu, exit_text);
    if (lives || watch->options->cpu)
        fprintf(out, " %.3f", watch->cpu * 1e6);
    else
        fputs(" -", out);
    print_events(watch, out);
    print_memory(watch, out);
    double first_tenth = first_tenth_ratio(&watch->rates);
    if (first_tenth > 0)
        fprintf(out, " %.4f", first_tenth);
    else
        fputs(" -", out);
    fprintf(out, " %s", lives ? "yes" : "no");
    print_modes(watch, out);
    print_growth(watch->grown_user, out);
    print_growth(watch->grown, out);
    fprintf(out, " %lld", disk_kib() - watch->disk);
    fputc('\n', out);
    if (fflush(out) != 0)
        err(1, "cannot write %s", watch->options->result);
}

static void hold_to(const char *processors)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const char *at = processors; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            errx(2, "processors are a list such as 0,2-3, not '%s'", processors);
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long i = first; i <= last && i >= 0 && i < CPU_SETSIZE; i++)
            CPU_SET((unsigned)i, &set);
        at = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            errx(2, "processors are a list such as 0,2-3, not '%s'", processors);
    }
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        err(1, "processors %s", processors);
}

static void take_place(const struct options *options)
{
    for (int i = 0; i < options->joins; i++)
        if (!file_write(options->join[i], "0"))
            err(1, "cannot join %s", options->join[i]);
    if (options->processors)
        hold_to(options->processors);
}

__attribute__((noreturn)) static void become(char *command[], int ends_with_parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, ends_with_parent);
    execvp(command[0], command);
    err(127, "cannot run %s", command[0]);
}

__attribute__((noreturn)) static void run_server(const struct options *options, char *command[])
{
    take_place(options);
    setpgid(0, 0);
    /* A shell makes its background commands ignore some of these. */
    static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
        signal(ignored[i], SIG_DFL);
    become(command, SIGTERM);
}

/* Blocks the signals that a run waits for, so that none is lost. */
static sigset_t signals_blocked(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signals;
}

static pid_t load_start(const struct options *options, char *command[])
{
    pid_t load = fork();
    if (load < 0)
        err(1, "fork");
    if (load == 0) {
        take_place(options);
        become(command, SIGKILL);
    }
    return load;
}

/* The time between two looks at the load, at most. */
static const double TICK_MOST = 0.01;
static const double PATIENCE = 2;

/* The ways in which the load ended. */
struct ending {
    int status;
    struct rusage usage;
    bool stopped, late;
};

static struct ending load_wait(pid_t load, double start, struct watch *watch,
                               const sigset_t *signals)
{
    const struct options *options = watch->options;
    struct ending ending = {.stopped = false};
    double patience = 0; /* until when a load that was told to end may still do so */
    while (wait4(load, &ending.status, WNOHANG, &ending.usage) == 0) {
        double wait = watch->rates.interval < TICK_MOST ? watch->rates.interval : TICK_MOST;
        struct timespec tick = {.tv_nsec = (long)(wait * 1e9)};
        int arrived = sigtimedwait(signals, NULL, &tick);
        if (arrived == SIGUSR1 && options->grown) {
            kill(load, SIGSTOP); /* it pauses by itself; this holds it until all is counted */
            watch_grown(watch);
            kill(load, SIGCONT);
        }
        if (arrived == SIGTERM || arrived == SIGINT ||
            (options->stop && access(options->stop, F_OK) == 0))
            ending.stopped = true;
        if (options->timeout > 0 && tool_now() - start > options->timeout)
            ending.late = true;
        if (ending.stopped || ending.late) {
            /* A load on other machines has to end its parts there. */
            if (patience <= 0)
                patience = tool_now() + PATIENCE;
            kill(load, tool_now() < patience ? SIGTERM : SIGKILL);
        }
        watch_sample(watch);
        first_tenth_sample(&watch->rates, tool_now());
    }
    return ending;
}

static int run_load(const struct options *options, char *command[])
{
    struct watch watch;
    sigset_t signals = signals_blocked();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    watch_begin(&watch, options);
    double start = tool_now();
    struct ending ending = load_wait(load_start(options, command), start, &watch, &signals);
    double seconds = tool_now() - start;
    char text[16];
    snprintf(text, sizeof(text), "%d",
             WIFEXITED(ending.status) ? WEXITSTATUS(ending.status) : 128 + WTERMSIG(ending.status));
    watch_end(&watch, seconds, &ending.usage,
              ending.stopped ? "stopped"
              : ending.late  ? "timeout"
                             : text);
    return ending.stopped ? 130 : 0;
}

static int run_memory(const struct options *options)
{
    struct tree tree;
    tree_read(&tree, options->server);
    printf("%.0f\n", tree_memory(&tree) / 1024);
    return 0;
}

static bool take_option(struct options *options, int option)
{
    switch (option) {
    case 'j':
        if (options->joins == JOINS_MOST)
            return false;
        options->join[options->joins++] = optarg;
        return true;
    case 'p':
        options->processors = optarg;
        return true;
    case 's':
        options->server = (pid_t)atoi(optarg);
        return true;
    case 'c':
        options->cpu = optarg;
        return true;
    case 'k':
        options->peak = optarg;
        return true;
    case 'n':
        options->current = optarg;
        return true;
    case 'r':
        options->result = optarg;
        return true;
    case 't':
        options->timeout = atof(optarg);
        return true;
    case 'g':
        options->grown = true;
        return true;
    case 'x':
        options->stop = optarg;
        return true;
    default:
        return false;
    }
}

int main(int count, char *arguments[])
{
    static const struct option table[] = {{"join", required_argument, NULL, 'j'},
                                          {"processors", required_argument, NULL, 'p'},
                                          {"server", required_argument, NULL, 's'},
                                          {"cpu", required_argument, NULL, 'c'},
                                          {"peak", required_argument, NULL, 'k'},
                                          {"current", required_argument, NULL, 'n'},
                                          {"result", required_argument, NULL, 'r'},
                                          {"timeout", required_argument, NULL, 't'},
                                          {"stop", required_argument, NULL, 'x'},
                                          {"grown", no_argument, NULL, 'g'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {.joins = 0};
    const char *role = count > 1 ? arguments[1] : "";
    char **rest = arguments + 1;
    optind = 1;
    for (int option; (option = getopt_long(count - 1, rest, "+", table, NULL)) != -1;)
        if (!take_option(&options, option))
            return 2;
    char **command = rest + optind;
    if (count > 1 && *command && !strcmp(role, "server"))
        run_server(&options, command);
    if (count > 1 && *command && !strcmp(role, "load") && options.server > 0)
        return run_load(&options, command);
    if (count > 1 && !strcmp(role, "memory") && options.server > 0)
        return run_memory(&options);
    fputs("usage: launch server [--join FILE]... [--processors LIST] -- COMMAND...\n"
          "       launch load --server PID [OPTION]... -- COMMAND...\n"
          "       launch memory --server PID\n",
          stderr);
    return 2;
}
