/* Attempts of an attacker who has taken over a worker, for tests/sandbox_escape.t: a request for
 * /escape/NAME makes one, and prints "escape NAME: " and the result. A key file "escape NAME" has
 * the process that holds the key make it; then the server prints the result. */
#include "common/base/fd_message.h"
#include "common/base/uring.h"
#include "common/escape_injection.h"
#include "common/net/key_process_escape_injection.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

/* ---- other processes ---- */

static pid_t process(const char *argument)
{
    return (pid_t)strtol(argument, NULL, 10);
}

static long signal_process(const char *argument)
{
    return kill(process(argument), SIGCONT);
}

static long signal_parent(const char *argument)
{
    (void)argument;
    return kill(getppid(), SIGCONT);
}

static long signal_thread(const char *argument)
{
    return syscall(SYS_tgkill, process(argument), process(argument), SIGCONT);
}

static long queue_signal(const char *argument)
{
    return sigqueue(process(argument), SIGCONT, (union sigval){0});
}

static long signal_by_descriptor(const char *argument)
{
    long descriptor = syscall(SYS_pidfd_open, process(argument), 0);

    return descriptor < 0 ? -1 : syscall(SYS_pidfd_send_signal, descriptor, SIGCONT, NULL, 0);
}

static long signal_by_owner(const char *argument)
{
    return fcntl(STDIN_FILENO, F_SETOWN, process(argument));
}

/* Asks a process to give its seat up, as the accepting process may. */
static long call_for_seat(const char *argument)
{
    return syscall(SYS_tkill, process(argument), SIGURG);
}

/* Tells the server that there is news of an upgrade, as the kernel may. */
static long signal_news(const char *argument)
{
    return syscall(SYS_tgkill, process(argument), process(argument), SIGIO);
}

static long trace(const char *argument)
{
    return ptrace(PTRACE_SEIZE, process(argument), NULL, NULL);
}

static long move_memory(const char *argument, long call)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)environ, 1};

    return syscall(call, process(argument), &here, 1, &there, 1, 0);
}

static long read_memory(const char *argument)
{
    return move_memory(argument, SYS_process_vm_readv);
}

static long write_memory(const char *argument)
{
    return move_memory(argument, SYS_process_vm_writev);
}

static long take_descriptor(const char *argument)
{
    long descriptor = syscall(SYS_pidfd_open, process(argument), 0);

    return descriptor < 0 ? -1 : syscall(SYS_pidfd_getfd, descriptor, 0, 0);
}

static long limit_process(const char *argument)
{
    return prlimit(process(argument), RLIMIT_NOFILE, &(struct rlimit){0}, NULL);
}

static long set_priority(const char *argument)
{
    return setpriority(PRIO_PROCESS, (id_t)process(argument), 19);
}

/* ---- sockets ---- */

static struct sockaddr_in loopback(const char *argument)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)strtol(argument, NULL, 10)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static long send_datagram(const char *argument)
{
    struct sockaddr_in address = loopback(argument);
    int file = socket(AF_INET, SOCK_DGRAM, 0);

    return file < 0 ? -1 : sendto(file, "x", 1, 0, (struct sockaddr *)&address, sizeof address);
}

static long connect_to(int type, const char *argument)
{
    struct sockaddr_in address = loopback(argument);
    int file = socket(AF_INET, type, 0);

    return file < 0 ? -1 : connect(file, (struct sockaddr *)&address, sizeof address);
}

static long connect_datagrams(const char *argument)
{
    return connect_to(SOCK_DGRAM, argument);
}

static long connect_stream(const char *argument)
{
    return connect_to(SOCK_STREAM, argument);
}

static long fast_open(const char *argument)
{
    struct sockaddr_in address = loopback(argument);
    int file = socket(AF_INET, SOCK_STREAM, 0);

    return file < 0
               ? -1
               : sendto(file, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof address);
}

static long fast_open_by_message(const char *argument)
{
    struct sockaddr_in address = loopback(argument);
    struct iovec data = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &data, .msg_iovlen = 1};
    int file = socket(AF_INET, SOCK_STREAM, 0);

    return file < 0 ? -1 : sendmsg(file, &message, MSG_FASTOPEN);
}

/* A socket of MPTCP connects by TCP where the other side knows no more. */
static long connect_by_multipath(const char *argument)
{
    struct sockaddr_in address = loopback(argument);
    int file = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);

    return file < 0 ? -1 : connect(file, (struct sockaddr *)&address, sizeof address);
}

static long listen_stream(const char *argument)
{
    struct sockaddr_in address = loopback("0");
    int file = socket(AF_INET, SOCK_STREAM, 0);

    (void)argument;
    return file < 0 || bind(file, (struct sockaddr *)&address, sizeof address) < 0
               ? -1
               : listen(file, 1);
}

static long open_socket(const char *argument)
{
    char *type;
    int family = (int)strtol(argument, &type, 10);

    return socket(family, (int)strtol(type + 1, NULL, 10), 0);
}

/* A socket of datagrams could send to any socket that has a path. */
static long open_socket_pair(const char *argument)
{
    int ends[2];

    return socketpair(AF_UNIX, (int)strtol(argument, NULL, 10), 0, ends);
}

/* An option of a listener holds for all who share it. */
static long set_socket_option(const char *argument)
{
    char *name;
    int level = (int)strtol(argument, &name, 10), value = 1;

    return setsockopt(STDIN_FILENO, level, (int)strtol(name + 1, NULL, 10), &value, sizeof value);
}

/* ---- new processes and programs ---- */

static long end_child(long child)
{
    if (child == 0)
        _exit(0);
    return child < 0 ? -1 : waitpid((pid_t)child, NULL, 0);
}

static long make_process(const char *argument)
{
    (void)argument;
    return end_child(fork());
}

static long make_process_by_clone(const char *argument)
{
    return end_child(syscall(SYS_clone, strtoul(argument, NULL, 0) | SIGCHLD, 0, 0, 0, 0));
}

static long make_process_by_clone3(const char *argument)
{
    uint64_t arguments[8] = {[4] = SIGCHLD};

    (void)argument;
    return end_child(syscall(SYS_clone3, arguments, sizeof arguments));
}

static long make_process_by_vfork(const char *argument)
{
    (void)argument;
    return end_child(syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0));
}

static long run_program(const char *argument)
{
    char *const arguments[] = {(char *)(uintptr_t)argument, NULL};

    return execve(argument, arguments, environ);
}

static long run_memory(const char *argument)
{
    char *const arguments[] = {(char *)(uintptr_t) "x", NULL};

    (void)argument;
    return execveat((int)syscall(SYS_memfd_create, "x", 0), "", arguments, environ, AT_EMPTY_PATH);
}

/* ---- memory ---- */

static long map(int protection, int flags, int file)
{
    return mmap(NULL, PAGE, protection, flags, file, 0) == MAP_FAILED ? -1 : 0;
}

static long map_writable_code(const char *argument)
{
    (void)argument;
    return map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static long map_code(const char *argument)
{
    (void)argument;
    return map(PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static long map_file_code(const char *argument)
{
    int file = (int)syscall(SYS_memfd_create, "x", 0);

    (void)argument;
    return map(PROT_READ | PROT_EXEC, MAP_SHARED, file < 0 ? STDIN_FILENO : file);
}

static long protect_code(const char *argument)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)argument;
    return mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

static long protect_code_by_key(const char *argument)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)argument;
    return syscall(SYS_pkey_mprotect, page, PAGE, PROT_READ | PROT_EXEC, -1);
}

/* ---- files ---- */

static long open_to_read(const char *argument)
{
    return open(argument, O_RDONLY);
}

static long open_to_write(const char *argument)
{
    return open(argument, O_WRONLY);
}

static long make_file(const char *argument)
{
    return open(argument, O_WRONLY | O_CREAT, 0600);
}

/* Opens a path by openat2, as the servers do. */
static long open_anywhere(const char *argument)
{
    const uint64_t how[3] = {O_RDONLY};

    return syscall(SYS_openat2, AT_FDCWD, argument, how, sizeof how);
}

static long change_mode(const char *argument)
{
    return chmod(argument, 0777);
}

static long change_owner(const char *argument)
{
    return chown(argument, getuid(), getgid());
}

static long change_times(const char *argument)
{
    return utimensat(AT_FDCWD, argument, NULL, 0);
}

static long remove_file(const char *argument)
{
    return unlink(argument);
}

static long rename_file(const char *argument)
{
    char other[PATH_MAX];

    snprintf(other, sizeof other, "%s.renamed", argument);
    return rename(argument, other);
}

static long link_file(const char *argument)
{
    char other[PATH_MAX];

    snprintf(other, sizeof other, "%s.linked", argument);
    return link(argument, other);
}

static long link_by_name(const char *argument)
{
    char other[PATH_MAX];

    snprintf(other, sizeof other, "%s.symbolic", argument);
    return symlink("/", other);
}

static long make_directory(const char *argument)
{
    return mkdir(argument, 0700);
}

/* ---- the kernel ---- */

/* A call by its number, with arguments that matter to no filter. */
static long call_by_number(const char *argument)
{
    return syscall(strtol(argument, NULL, 0), 0, 0, 0, 0, 0, 0);
}

/* Asks for a limit above none. Without a sandbox it stays what it was: the server needs it. */
static long raise_limit(const char *argument)
{
    struct rlimit limit = {.rlim_cur = 100, .rlim_max = 100}, old;

    (void)argument;
    if (getrlimit(RLIMIT_NPROC, &old) == 0 && old.rlim_max > 0)
        limit = old;
    return setrlimit(RLIMIT_NPROC, &limit);
}

static long control(const char *argument)
{
    char *value;
    int option = (int)strtol(argument, &value, 10);

    return prctl(option, *value != '\0' ? strtoul(value + 1, NULL, 10) : 0UL, 0UL, 0UL, 0UL);
}

static long fake_input(const char *argument)
{
    (void)argument;
    return ioctl(STDIN_FILENO, TIOCSTI, "x");
}

/* ---- the ring of a worker ---- */

/* Returns the result of the operation that was submitted last and that nobody waits for. */
static long ring_result(const struct uring *ring)
{
    for (unsigned i = *ring->completion_tail; i != *ring->completion_head; i--) {
        const struct io_uring_cqe *last = &ring->completions[(i - 1) & ring->completion_mask];
        if (last->user_data != URING_NOBODY)
            continue;
        errno = last->res < 0 ? -last->res : 0;
        return last->res < 0 ? -1 : 0;
    }
    errno = ENODATA;
    return -1;
}

static long submit(const struct io_uring_sqe *operation)
{
    struct io_uring_sqe *entry = uring_entry(uring_to_escape);

    *entry = *operation;
    entry->user_data = URING_NOBODY;
    uring_submit(uring_to_escape);
    return ring_result(uring_to_escape);
}

/* An operation by its number, with arguments that do no harm. */
static long operate(const char *argument)
{
    return submit(&(struct io_uring_sqe){
        .opcode = (uint8_t)strtol(argument, NULL, 10), .fd = -1, .addr = URING_NOBODY - 1});
}

/* Submits an operation with flags that no entry needs: links, fixed descriptors, other threads. */
static long operate_with_flags(const char *argument)
{
    return submit(&(struct io_uring_sqe){
        .opcode = IORING_OP_POLL_ADD, .fd = -1, .flags = (uint8_t)strtol(argument, NULL, 10)});
}

static long change_ring(const char *argument)
{
    return syscall(SYS_io_uring_register, uring_to_escape->file, strtol(argument, NULL, 10), NULL,
                   0);
}

static int find_listener(void)
{
    for (int file = 3; file < 256; file++) {
        int listens = 0, type = 0;
        socklen_t size = sizeof listens;
        if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
            getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM)
            return file;
    }
    return -1;
}

/* A listener that has ended is a socket that can connect. */
static long end_listener(const char *argument)
{
    (void)argument;
    return shutdown(find_listener(), SHUT_RDWR);
}

/* Has the kernel drop packets whose time to live is below 255, as that of clients is. */
static long refuse_clients(const char *argument)
{
    int hops = 255;

    (void)argument;
    return setsockopt(find_listener(), IPPROTO_IP, IP_MINTTL, &hops, sizeof hops);
}

/* The access log: a file that is written at its end. */
static int find_log(void)
{
    struct stat about;

    for (int file = 3; file < 256; file++) {
        int flags = fcntl(file, F_GETFL);
        if (flags >= 0 && (flags & O_APPEND) && fstat(file, &about) == 0 && S_ISREG(about.st_mode))
            return file;
    }
    return -1;
}

static long empty_log(const char *argument)
{
    (void)argument;
    return ftruncate(find_log(), 0);
}

/* Without O_APPEND a line could be written over another one. */
static long write_log_anywhere(const char *argument)
{
    (void)argument;
    return fcntl(find_log(), F_SETFL, O_NONBLOCK);
}

/* Makes descriptors that this worker shares with the server wait. */
static long make_wait(const char *argument)
{
    int on = 0, made = 0;

    (void)argument;
    for (int file = 3; file < 256; file++)
        made += ioctl(file, FIONBIO, &on) == 0;
    return made > 0 ? 0 : -1;
}

/* Each eventfd has its highest value: who writes to it has to wait. */
static long fill_events(const char *argument)
{
    int full = 0;

    for (int file = 3; file < 256; file++)
        full += eventfd_write(file, UINT64_MAX - 1) == 0;
    return full > 0 ? make_wait(argument) : -1;
}

/* Asks each process behind a socket to open the log again. */
static void ask_for_log(int client)
{
    for (int file = 3; file < 256; file++)
        if (file != client)
            fd_message_send_at_once(file, "o", 1, &client, 1);
}

/* Asks twice: for an answer at a full socket, which takes none, and at one that takes it. */
static long open_log_again(const char *argument)
{
    int full[2], ends[2];
    struct fd_message message;
    size_t size;
    char nothing;

    (void)argument;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, full) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        return -1;
    while (send(full[1], "", 1, MSG_DONTWAIT) == 1)
        continue;
    ask_for_log(full[1]);
    ask_for_log(ends[1]);
    close(ends[1]);
    if (fd_message_receive(ends[0], &nothing, 1, &size, &message))
        return 0;
    errno = EPIPE;
    return -1;
}

/* ---- shared memory ---- */

/* No more bytes of a mapping are changed, so that unused parts stay without pages. */
#define SCRIBBLE_LIMIT ((size_t)1 << 20)

static struct {
    unsigned char *data;
    size_t size;
} shared[64];
static size_t shared_count;

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);

/* Notes the memory that the server shares. */
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    void *memory = __real_mmap(address, size, protection, flags, file, offset);

    if (memory != MAP_FAILED && (flags & MAP_SHARED) && (protection & PROT_WRITE) &&
        !(flags & MAP_POPULATE) && shared_count < sizeof shared / sizeof shared[0]) {
        shared[shared_count].data = memory;
        shared[shared_count++].size = size < SCRIBBLE_LIMIT ? size : SCRIBBLE_LIMIT;
    }
    return memory;
}

/* Reports the crash of this process: its parent might not report it. */
static void crash(int signal)
{
    static const char line[] = "escape: a process has crashed\n";

    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        _exit(1);
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* it comes again */
}

__attribute__((constructor)) static void note_crashes(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigaction(faults[i], &(struct sigaction){.sa_handler = crash}, NULL);
}

static long crash_at_once(const char *argument)
{
    (void)argument;
    return raise(SIGSEGV);
}

/* A linear congruential generator. */
static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

/* Writes values to one in EVERY words of the shared memory; the argument is EVERY/SEED. */
static long scribble(const char *argument)
{
    uint32_t every = 0;
    uint64_t state = 0;

    if (sscanf(argument, "%" SCNu32 "/%" SCNu64, &every, &state) != 2 || every == 0) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < shared_count; i++)
        for (size_t at = 0; at + sizeof(uint32_t) <= shared[i].size; at += sizeof(uint32_t)) {
            const uint32_t values[] = {0, 1, 2, INT32_MAX, UINT32_MAX, draw(&state)};
            if (draw(&state) % every == 0)
                memcpy(shared[i].data + at, &values[draw(&state) % 6], sizeof(uint32_t));
        }
    return 0;
}

/* Writes zeros to all shared memory, again and again, for as long as the worker lives. */
static long erase(const char *argument)
{
    static const char line[] = "escape: a worker erases\n";

    (void)argument;
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        return -1;
    for (;;)
        for (size_t i = 0; i < shared_count; i++)
            explicit_bzero(shared[i].data, shared[i].size);
}

/* A send that opens a connection. */
static long fast_open_by_ring(const char *argument)
{
    struct sockaddr_in address = loopback(argument);

    return submit(&(struct io_uring_sqe){.opcode = IORING_OP_SEND,
                                         .fd = find_listener(),
                                         .addr = (uintptr_t) "x",
                                         .len = 1,
                                         .addr2 = (uintptr_t)&address,
                                         .addr_len = sizeof address,
                                         .msg_flags = MSG_FASTOPEN | MSG_DONTWAIT});
}

/* ---- the table ---- */

static const struct {
    const char *name;
    long (*attempt)(const char *argument);
} attempts[] = {
    {"signal", signal_process},
    {"signal-parent", signal_parent},
    {"signal-thread", signal_thread},
    {"signal-queued", queue_signal},
    {"signal-by-descriptor", signal_by_descriptor},
    {"signal-by-owner", signal_by_owner},
    {"call-for-seat", call_for_seat},
    {"signal-news", signal_news},
    {"trace", trace},
    {"read-memory", read_memory},
    {"write-memory", write_memory},
    {"take-descriptor", take_descriptor},
    {"limit-process", limit_process},
    {"priority", set_priority},
    {"udp-send", send_datagram},
    {"udp-connect", connect_datagrams},
    {"tcp-connect", connect_stream},
    {"tcp-fast-open", fast_open},
    {"tcp-message", fast_open_by_message},
    {"tcp-multipath", connect_by_multipath},
    {"tcp-listen", listen_stream},
    {"socket", open_socket},
    {"socket-pair", open_socket_pair},
    {"socket-option", set_socket_option},
    {"fork", make_process},
    {"clone", make_process_by_clone},
    {"clone3", make_process_by_clone3},
    {"vfork", make_process_by_vfork},
    {"exec", run_program},
    {"exec-memory", run_memory},
    {"map-writable-code", map_writable_code},
    {"map-code", map_code},
    {"map-file-code", map_file_code},
    {"protect-code", protect_code},
    {"protect-code-by-key", protect_code_by_key},
    {"read", open_to_read},
    {"write", open_to_write},
    {"create", make_file},
    {"openat2", open_anywhere},
    {"chmod", change_mode},
    {"chown", change_owner},
    {"utimensat", change_times},
    {"unlink", remove_file},
    {"rename", rename_file},
    {"link", link_file},
    {"symlink", link_by_name},
    {"mkdir", make_directory},
    {"call", call_by_number},
    {"raise-limit", raise_limit},
    {"prctl", control},
    {"fake-input", fake_input},
    {"ring", operate},
    {"ring-flags", operate_with_flags},
    {"ring-change", change_ring},
    {"ring-fast-open", fast_open_by_ring},
    {"end-listener", end_listener},
    {"refuse-clients", refuse_clients},
    {"empty-log", empty_log},
    {"write-log-anywhere", write_log_anywhere},
    {"make-wait", make_wait},
    {"fill-events", fill_events},
    {"open-log-again", open_log_again},
    {"scribble", scribble},
    {"erase", erase},
    {"crash", crash_at_once},
};

static const char *attempt(const char *name, const char *argument)
{
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        if (strcmp(attempts[i].name, name) == 0)
            return attempts[i].attempt(argument) < 0 ? strerrorname_np(errno) : "done";
    return "unknown";
}

/* Copies a name into `space`, and ends it there. Returns its argument, which may be a path. */
static const char *split(struct text name, char space[PATH_MAX])
{
    char *argument;

    snprintf(space, PATH_MAX, "%.*s", (int)name.length, name.data);
    argument = strchr(space, '/');
    if (argument == NULL)
        return "";
    *argument = '\0';
    return argument + 1;
}

const char *key_escape_attempt(struct text name)
{
    char space[PATH_MAX];
    const char *argument = split(name, space);

    return attempt(space, argument);
}

void escape_attempt(struct text name)
{
    char space[PATH_MAX];
    const char *argument = split(name, space);

    warnx("escape %s %s: %s", space, argument, attempt(space, argument));
}
