/* The lists of system calls that a server needs: for all, for each service, for each model. */
#include "common/sandbox/sandbox_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INT  UINT32_MAX
#define LONG UINT64_MAX
#define ANY(name)                                                                                  \
    {                                                                                              \
        .number = SYS_##name                                                                       \
    }
#define IF(name, argument_, mask_, value_)                                                         \
    {                                                                                              \
        .number = SYS_##name, .tests = 1, .test = {                                                \
            {.argument = (argument_), .mask = (mask_), .value = (value_)}                          \
        }                                                                                          \
    }
#define IF_BOTH(name, first, first_mask, first_value, second, second_mask, second_value)           \
    {                                                                                              \
        .number = SYS_##name, .tests = 2, .test = {                                                \
            {first, first_mask, first_value},                                                      \
            {second, second_mask, second_value}                                                    \
        }                                                                                          \
    }

/* A socket of the usual protocol: of this type, which stands beside flags. By MPTCP it could
 * connect to any port, since Landlock knows ports of TCP alone. */
#define SOCKET_TYPE 0xf
#define SOCKET(family, type)                                                                       \
    {                                                                                              \
        .number = SYS_socket, .tests = 3, .test = {                                                \
            {0, INT, family},                                                                      \
            {1, SOCKET_TYPE, type},                                                                \
            {2, INT, 0}                                                                            \
        }                                                                                          \
    }
/* A pair that messages are sent through. A socket of datagrams could send to any other by its path.
 */
#define SOCKETPAIR IF_BOTH(socketpair, 0, INT, AF_UNIX, 1, SOCKET_TYPE, SOCK_SEQPACKET)
/* Any message but one that opens a connection (MSG_FASTOPEN), which Landlock does not check. */
#define SENDMSG IF(sendmsg, 2, MSG_FASTOPEN, 0)

#define ALLOW(filter, rules) syscall_filter_allow(filter, rules, sizeof(rules) / sizeof((rules)[0]))

/* ---- all servers and workers ---- */

static const struct syscall_rule all[] = {
    /* Those with tests first: the kernel remembers which others it may allow without a look. */
    IF(mmap, 2, PROT_EXEC, 0),
    IF(mprotect, 2, PROT_EXEC, 0),
    IF(sendto, 4, LONG, 0), /* to the peer of a connection only */
    IF(fcntl, 1, INT, F_GETFL),
    IF(fcntl, 1, INT, F_GETFD),
    IF(fcntl, 1, INT, F_SETFD),
    IF(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH), /* of an open file */
    IF(ioctl, 1, INT, FIONBIO), /* F_SETFL could also take O_APPEND from the log */
    IF(ioctl, 1, INT, SIOCOUTQ),
    IF(ioctl, 1, INT, TCGETS), /* the C library asks whether the output is a terminal */
    IF_BOTH(setsockopt, 1, INT, SOL_SOCKET, 2, INT, SO_LINGER),
    IF_BOTH(setsockopt, 1, INT, IPPROTO_TCP, 2, INT, TCP_NOTSENT_LOWAT),
    IF_BOTH(setsockopt, 1, INT, IPPROTO_IP, 2, INT, IP_MINTTL),
    IF_BOTH(setsockopt, 1, INT, IPPROTO_IPV6, 2, INT, IPV6_MINHOPCOUNT),
    IF_BOTH(prctl, 0, INT, PR_SET_PDEATHSIG, 1, INT, SIGKILL), /* it ends with its parent */
    /* memory and time */
    ANY(brk),
    ANY(munmap),
    ANY(mremap),
    ANY(madvise),
    ANY(clock_gettime),
    ANY(clock_getres),
    ANY(clock_nanosleep),
    ANY(getrandom),
    ANY(getrusage),
    ANY(sysinfo), /* sorting asks how much memory there is */
    /* processes, threads and signals: none that reaches another process */
    ANY(futex),
    ANY(getpid),
    ANY(getppid),
    ANY(gettid),
    ANY(sched_yield),
    ANY(set_robust_list),
    ANY(rseq),
    ANY(rt_sigaction),
    ANY(rt_sigprocmask),
    ANY(rt_sigreturn),
    ANY(restart_syscall),
    ANY(exit),
    ANY(exit_group),
    /* descriptors */
    ANY(read),
    ANY(pread64),
    ANY(write),
    ANY(writev),
    ANY(lseek),
    ANY(close),
    ANY(close_range),
    ANY(fstat),
    ANY(poll),
    ANY(ppoll),
    ANY(epoll_create1),
    ANY(epoll_ctl),
    ANY(epoll_wait),
    ANY(epoll_pwait),
    /* connections */
    ANY(accept4),
    ANY(recvfrom),
    ANY(recvmsg),
    ANY(getsockname),
    ANY(getpeername),
    ANY(getsockopt),
    ANY(sendfile),
};

/* The process that accepts ends listening, and has the kernel refuse new clients first. A worker
 * must not: a listener that has ended could connect, by a send that opens a connection. */
static const struct syscall_rule ends_listening[] = {
    ANY(shutdown),
    IF_BOTH(setsockopt, 1, INT, SOL_SOCKET, 2, INT, SO_ATTACH_FILTER),
};
/* A timer of the process that accepts makes each stop end. Workers have no timers. */
static const struct syscall_rule stops[] = {
    ANY(timer_settime),
};
/* The process that accepts writes a report over the last one. A worker could empty the log. */
static const struct syscall_rule reports[] = {
    ANY(ftruncate),
};
static const struct syscall_rule shutdowns_worker[] = {
    IF(shutdown, 1, INT, SHUT_WR),
};

/* ---- the services, the transports and the log ---- */

static const struct syscall_rule files[] = {
    ANY(openat2),
    ANY(newfstatat),
    ANY(getdents64),
};

/* Of a directory outside the root, a watch tells names alone: newfstatat tells as much. */
static const struct syscall_rule watches[] = {
    ANY(inotify_add_watch),
    ANY(inotify_rm_watch),
    ANY(fstatfs),
};

static const struct syscall_rule ring[] = {
    ANY(io_uring_enter),
};

static const struct syscall_rule timers[] = {
    ANY(timerfd_create),
    ANY(timerfd_settime),
};

static const struct syscall_rule connections[] = {
    SOCKET(AF_INET, SOCK_STREAM),
    SOCKET(AF_INET6, SOCK_STREAM),
    IF_BOTH(setsockopt, 1, INT, IPPROTO_TCP, 2, INT, TCP_NODELAY),
    ANY(connect),
};

static const struct syscall_rule writable[] = {
    IF(fcntl, 1, INT, F_OFD_SETLK),
    IF(fcntl, 1, INT, F_OFD_GETLK),
    IF(mknodat, 2, INT, S_IFIFO | S_IRUSR | S_IWUSR), /* a pipe that requests wait at */
    IF(utimensat, 1, LONG, 0),                        /* of an open file */
    IF(fchmod, 1, INT, S_IRUSR | S_IWUSR),            /* a file is marked, as cache_entry.h says */
    IF(linkat, 4, INT, AT_SYMLINK_FOLLOW),            /* of an open file that has no name */
    ANY(openat),
    ANY(pwrite64),
    ANY(fallocate),
    ANY(flock),
    ANY(unlinkat),
    ANY(renameat),
    ANY(renameat2),
};

static const struct syscall_rule datagrams[] = {
    ANY(pipe2),
    ANY(memfd_create), /* where pipes are small */
    ANY(pwrite64),
    SENDMSG,
};

static const struct syscall_rule log_file[] = {
    ANY(dup3),
};

/* A question to a helper process, for a signature or the log, carries a descriptor to answer at. */
static const struct syscall_rule questions[] = {
    IF_BOTH(setsockopt, 1, INT, SOL_SOCKET, 2, INT, SO_RCVTIMEO),
    SOCKETPAIR,
    SENDMSG,
};

/* --accept=lock. */
static const struct syscall_rule file_lock[] = {
    IF(fcntl, 1, INT, F_SETLKW),
};

/* ---- the models ---- */

/* The call that makes a thread of this process. A filter cannot see the flags of clone3. */
static const struct syscall_rule threads[] = {
    IF(clone, 0,
       CLONE_THREAD | CLONE_VM | CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
       CLONE_THREAD | CLONE_VM),
};

/* The calls that make a process, in no new namespace. */
#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)
static const struct syscall_rule processes[] = {
    IF(clone, 0, NAMESPACES, 0),
    /* A child gives up the right to make processes. */
    IF_BOTH(prlimit64, 0, INT, 0, 1, INT, RLIMIT_NPROC),
    ANY(wait4),
};

/* A child that the C library did not make runs on the stack of a thread that it made. That thread
 * asks the kernel where its identifier and its list of robust mutexes lie. */
static const struct syscall_rule clones[] = {
    IF(prctl, 0, INT, PR_GET_TID_ADDRESS),
    IF(get_robust_list, 0, INT, 0),
};

/* A template has a name of its own, and its children have that of the server. */
static const struct syscall_rule template[] = {
    IF(prctl, 0, INT, PR_SET_NAME),
};

/* The accepting process asks others to give their seats up, by a signal that ends nobody. */
static const struct syscall_rule calls_for_seats[] = {
    IF(tkill, 1, INT, SIGURG),
};

/* The process that accepts hands its listeners to the server that replaces it, and has the kernel
 * send SIGIO to itself when that one answers. */
static void allow_handover(struct syscall_filter *filter)
{
    const uint64_t self = (uint64_t)getpid();
    const struct syscall_rule rules[] = {
        IF_BOTH(fcntl, 1, INT, F_SETOWN, 2, LONG, self),
        IF(ioctl, 1, INT, FIOASYNC),
        IF_BOTH(tgkill, 0, INT, self, 2, INT, SIGIO),
        SOCKETPAIR,
        SENDMSG,
    };

    ALLOW(filter, rules);
}

/* The process that has workers makes what they need, and each enters a sandbox of its own. */
static const struct syscall_rule makes_workers[] = {
    IF(prctl, 0, INT, PR_SET_NO_NEW_PRIVS),
    ANY(seccomp),
    ANY(landlock_restrict_self),
    ANY(memfd_create),
};

/* A worker has the kernel send signals to itself, and then loses these rights. */
static const struct syscall_rule workers_watch[] = {
    IF(ioctl, 1, INT, FIOASYNC),
    IF(fcntl, 1, INT, F_SETSIG),
    IF(fcntl, 1, INT, F_SETOWN),
    ANY(inotify_init1),
};

/* A worker makes its ring, which restricts itself, and then loses these rights. */
static const struct syscall_rule workers_ring[] = {
    IF(io_uring_register, 1, INT, IORING_REGISTER_PBUF_RING),
    IF(io_uring_register, 1, INT, IORING_REGISTER_RESTRICTIONS),
    IF(io_uring_register, 1, INT, IORING_REGISTER_ENABLE_RINGS),
    ANY(io_uring_setup),
};

/* The calls for memory of helper processes that allocate some. */
static const struct syscall_rule memory[] = {
    IF(mmap, 2, PROT_EXEC, 0),
    IF(mprotect, 2, PROT_EXEC, 0),
    ANY(brk),
    ANY(munmap),
    ANY(mremap),
    ANY(madvise),
    ANY(futex),
};

/* The processes that hold the key sign what comes through their socket or a channel, respond at the
 * socket that comes with it or at the channel, and read files again. */
static const struct syscall_rule signer[] = {
    IF(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
    IF_BOTH(fcntl, 1, INT, F_SETFL, 2, O_ASYNC, 0),
    IF_BOTH(setsockopt, 1, INT, SOL_SOCKET, 2, INT, SO_LINGER),
    IF_BOTH(getsockopt, 1, INT, SOL_SOCKET, 2, INT, SO_PEERCRED),
    IF(sendto, 4, LONG, 0),
    ANY(recvmsg),
    ANY(recvfrom), /* at a channel, or in the process that only reads files */
    ANY(poll),
    ANY(read),
    ANY(close),
    ANY(getrandom),
    ANY(clock_gettime),
    ANY(clock_nanosleep),
    ANY(restart_syscall),
    ANY(exit_group),
};

/* Their supervisor makes them, and each takes rights from itself. */
static const struct syscall_rule supervisor[] = {
    IF(clone, 0, CLONE_VM | NAMESPACES, 0),
    IF(prctl, 0, INT, PR_SET_NO_NEW_PRIVS),
    ANY(seccomp),
    ANY(wait4),
    ANY(clock_nanosleep),
    ANY(set_robust_list),
    ANY(getpid), /* a new one asks who it is */
};

/* The process that looks names up asks by UDP, or by TCP for a long answer, and opens no file. */
static const struct syscall_rule names[] = {
    SOCKET(AF_INET, SOCK_STREAM),
    SOCKET(AF_INET6, SOCK_STREAM),
    SOCKET(AF_INET, SOCK_DGRAM),
    SOCKET(AF_INET6, SOCK_DGRAM),
    IF(sendto, 4, LONG, 0),
    ANY(connect),
    ANY(recvfrom),
    ANY(poll),
    ANY(restart_syscall),
    ANY(close),
    ANY(getrandom),
    ANY(clock_gettime),
    ANY(exit_group),
};

/* The process that opens the log again opens no file but to be written at its end. */
static const struct syscall_rule log_opener[] = {
    IF(openat, 2, O_TRUNC | O_APPEND, O_APPEND),
    IF_BOTH(setsockopt, 1, INT, SOL_SOCKET, 2, INT, SO_LINGER),
    ANY(recvmsg),
    ANY(sendmsg),
    ANY(close),
    ANY(restart_syscall),
    ANY(exit_group),
};

/* The process that keeps a directory below its limit sees and removes the files there. */
static const struct syscall_rule keeper[] = {
    IF(fcntl, 1, INT, F_GETFL), /* fdopendir() reads the flags of the directory, */
    IF(fcntl, 1, INT, F_SETFD), /* and sets FD_CLOEXEC */
    ANY(recvfrom),
    ANY(poll),
    ANY(openat),
    ANY(openat2),
    ANY(getdents64),
    ANY(newfstatat),
    ANY(unlinkat),
    ANY(flock),
    ANY(fallocate), /* the shared file may have become shorter */
    ANY(fstat),
    ANY(close),
    ANY(getrandom),
    ANY(sysinfo), /* sorting asks how much memory there is */
    ANY(clock_gettime),
    ANY(rt_sigaction),
    ANY(rt_sigprocmask),
    ANY(rt_sigreturn),
    ANY(restart_syscall),
    ANY(exit_group),
};

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* The calls that the runtime of a sanitizer needs as well. */
static const struct syscall_rule sanitizers[] = {
    ANY(sigaltstack), ANY(gettimeofday), ANY(nanosleep),
    ANY(time),        ANY(mincore),      ANY(openat),
    ANY(open),        ANY(readlink),     ANY(prctl),
    ANY(prlimit64),   ANY(tgkill),       ANY(sched_getaffinity),
    ANY(newfstatat),  ANY(unlink),       ANY(clock_nanosleep),
};

/* ---- the filters ---- */

static void allow_needs(const struct sandbox *sandbox, struct syscall_filter *filter)
{
    if (sandbox->root >= 0)
        ALLOW(filter, files);
    if (sandbox->watches)
        ALLOW(filter, watches);
    if (sandbox->rings)
        ALLOW(filter, ring);
    if (sandbox->timers)
        ALLOW(filter, timers);
    if (sandbox->connects)
        ALLOW(filter, connections);
    if (sandbox->writable >= 0) {
        ALLOW(filter, files);
        ALLOW(filter, writable);
    }
    if (sandbox->datagrams)
        ALLOW(filter, datagrams);
    if (sandbox->log)
        ALLOW(filter, log_file);
    if (sandbox->log || sandbox->key_process)
        ALLOW(filter, questions);
    if (sandbox->served_by == BY_WORKER_PROCESS)
        ALLOW(filter, file_lock);
    ALLOW(filter, all);
    if (SANITIZED)
        ALLOW(filter, sanitizers);
}

void sandbox_calls_server(const struct sandbox *sandbox, struct syscall_filter *filter)
{
    syscall_filter_begin(filter);
    allow_handover(filter);
    switch (sandbox->served_by) {
    case BY_MAIN:
        break;
    case BY_THREAD:
    case BY_WORKER_THREAD:
        ALLOW(filter, calls_for_seats);
        ALLOW(filter, threads);
        break;
    case BY_CHILD:
        ALLOW(filter, calls_for_seats);
        ALLOW(filter, processes);
        break;
    case BY_WORKER_PROCESS:
        ALLOW(filter, processes);
        ALLOW(filter, makes_workers);
        if (sandbox->watches)
            ALLOW(filter, workers_watch);
    }
    if (sandbox->clones)
        ALLOW(filter, clones);
    if (sandbox->template)
        ALLOW(filter, template);
    if (sandbox->rings)
        ALLOW(filter, workers_ring);
    ALLOW(filter, ends_listening);
    ALLOW(filter, stops);
    if (sandbox->reports)
        ALLOW(filter, reports);
    syscall_filter_fail(filter, SYS_clone3, ENOSYS); /* the C library then calls clone */
    allow_needs(sandbox, filter);
}

/* A helper process may signal the server alone, which then replaces itself. */
static void allow_asking(pid_t server, struct syscall_filter *filter)
{
    const struct syscall_rule rules[] = {
        IF_BOTH(kill, 0, INT, (uint64_t)server, 1, INT, SIGUSR2),
    };

    if (server > 0)
        ALLOW(filter, rules);
}

void sandbox_calls_helper(const struct sandbox *sandbox, struct syscall_filter *filter)
{
    syscall_filter_begin(filter);
    if (sandbox->helper == SANDBOX_NAMES) {
        ALLOW(filter, names);
    } else if (sandbox->helper == SANDBOX_LOG_OPENER) {
        ALLOW(filter, log_opener);
    } else if (sandbox->helper == SANDBOX_SIGNER) {
        ALLOW(filter, signer);
        ALLOW(filter, memory);
    } else {
        ALLOW(filter, keeper);
        ALLOW(filter, memory);
    }
    allow_asking(sandbox->server, filter);
    if (sandbox->role == HELPER_PROCESS_SUPERVISOR)
        ALLOW(filter, supervisor);
    if (SANITIZED) { /* ThreadSanitizer makes a thread in each process */
        ALLOW(filter, threads);
        syscall_filter_fail(filter, SYS_clone3, ENOSYS);
        ALLOW(filter, all);
        ALLOW(filter, sanitizers);
    }
}

void sandbox_calls_worker(const struct sandbox *sandbox, struct syscall_filter *filter)
{
    syscall_filter_begin(filter);
    ALLOW(filter, shutdowns_worker);
    allow_needs(sandbox, filter);
}
