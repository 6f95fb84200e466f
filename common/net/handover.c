/* Hands listening sockets to the program that follows a server, and starts that program. */
#include "common/net/handover.h"

#include "common/base/fd_message.h"
#include "common/base/helper_process.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tells the new program what it has got: its process, listeners, TCP and UDP sockets of each, and
 * whether they belong to a service manager. The sockets stand in this order; the channel follows.
 */
#define VARIABLE         "SERVER_HANDOVER"
#define FIRST_DESCRIPTOR (STDERR_FILENO + 1)

/* ---- the new program ---- */

static bool read_variable(const char *text, struct handover *handover)
{
    int process = 0, adopted = 0;

    if (text == NULL || sscanf(text, "%d %d %d %d %d", &process, &handover->listeners,
                               &handover->streams, &handover->datagrams, &adopted) != 5)
        return false;
    handover->adopted = adopted != 0;
    return process == getpid() && handover->listeners > 0 && handover->streams > 0 &&
           handover->streams <= LISTENER_LIMIT && handover->datagrams >= 0 &&
           handover->datagrams <= LISTENER_LIMIT;
}

struct handover handover_take(void)
{
    struct handover handover = {0};
    bool given = read_variable(getenv(VARIABLE), &handover);

    unsetenv(VARIABLE);
    if (!given)
        return (struct handover){.channel = -1};
    handover.channel =
        FIRST_DESCRIPTOR + handover.listeners * (handover.streams + handover.datagrams);
    for (int i = FIRST_DESCRIPTOR; i <= handover.channel; i++)
        fcntl(i, F_SETFD, FD_CLOEXEC);
    return handover;
}

bool handover_listener(const struct handover *handover, int number, struct listener *listener)
{
    int count = handover->streams + handover->datagrams;

    return listener_inherit(listener, FIRST_DESCRIPTOR + number * count, handover->streams,
                            handover->datagrams, handover->adopted);
}

/* ---- the process that starts it ---- */

enum kind { KIND_REFUSE, KIND_PASS, KIND_START };

struct message {
    enum kind kind;
    int streams; /* of the sockets that come with it, these are TCP; the others are UDP */
    bool adopted;
};

struct program {
    const char *path;
    char **argv;
    sigset_t signals; /* that were blocked when the server was started */
    pid_t server;
};

/* The sockets for the next program. */
struct passed {
    int *sockets;
    int count, listeners, streams;
    bool adopted, incomplete;
};

static void refuse(int socket, const struct message *message, const struct fd_message *sockets)
{
    struct listener listener = {.count = sockets->count, .streams = message->streams};
    char answer;

    memcpy(listener.sockets, sockets->descriptors, (size_t)sockets->count * sizeof(int));
    answer = listener_refuse(&listener);
    send(socket, &answer, 1, MSG_NOSIGNAL);
}

static void keep(struct passed *passed, const struct message *message, struct fd_message *sockets)
{
    size_t count = (size_t)(passed->count + sockets->count);
    int *grown = realloc(passed->sockets, count * sizeof *grown);

    if (grown == NULL) {
        passed->incomplete = true;
        return;
    }
    passed->sockets = grown;
    memcpy(grown + passed->count, sockets->descriptors, (size_t)sockets->count * sizeof *grown);
    passed->count += sockets->count;
    passed->streams = message->streams;
    passed->adopted = message->adopted;
    passed->listeners++;
    sockets->count = 0;
}

static void forget(struct passed *passed)
{
    for (int i = 0; i < passed->count; i++)
        close(passed->sockets[i]);
    free(passed->sockets);
    *passed = (struct passed){0};
}

static void set_environment(const struct passed *passed)
{
    char text[80];

    snprintf(text, sizeof text, "%d %d %d %d %d", (int)getpid(), passed->listeners, passed->streams,
             passed->count / passed->listeners - passed->streams, passed->adopted);
    setenv(VARIABLE, text, 1);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
}

/* Becomes the program. Descriptors are received in rising order, so that none is overwritten before
 * it has been moved. Until the program handles signals, one more of these must not end it. */
static void become(const struct program *program, const struct passed *passed,
                   const int descriptors[3])
{
    struct handover_report report = {0};
    int next = FIRST_DESCRIPTOR;

    dup2(descriptors[0], STDOUT_FILENO);
    dup2(descriptors[1], STDERR_FILENO);
    for (int i = 0; i < passed->count; i++)
        dup2(passed->sockets[i], next++);
    dup2(descriptors[2], next);
    close_range((unsigned)next + 1, ~0U, 0);
    set_environment(passed);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_SETMASK, &program->signals, NULL);
    execv(program->path, program->argv);
    report.error = errno;
    send(next, &report, sizeof report, MSG_NOSIGNAL);
    _exit(1);
}

static void report_error(int channel)
{
    struct handover_report report = {.error = errno};

    send(channel, &report, sizeof report, MSG_NOSIGNAL);
}

/* Forks twice: nobody has to reap the program. */
static void start(const struct program *program, const struct passed *passed,
                  const struct fd_message *message)
{
    int channel = message->descriptors[2];
    pid_t child;

    errno = ENOMEM;
    child = passed->incomplete || passed->count == 0 ? -1 : fork();
    if (child < 0) {
        report_error(channel);
    } else if (child == 0) {
        child = fork();
        if (child == 0)
            become(program, passed, message->descriptors);
        if (child < 0)
            report_error(channel);
        _exit(0);
    } else {
        waitpid(child, NULL, 0);
    }
}

static void serve(int socket, const void *argument)
{
    const struct program *program = argument;
    struct passed passed = {0};
    struct fd_message sockets;
    struct message message;

    while (fd_message_receive(socket, &message, sizeof message, &sockets)) {
        if (sockets.sender == program->server && message.kind == KIND_REFUSE)
            refuse(socket, &message, &sockets);
        else if (sockets.sender == program->server && message.kind == KIND_PASS)
            keep(&passed, &message, &sockets);
        else if (sockets.sender == program->server && sockets.count == 3)
            start(program, &passed, &sockets);
        if (message.kind == KIND_START)
            forget(&passed);
        fd_message_close(&sockets);
    }
}

/* ---- the server ---- */

/* The path is that by which the kernel was told to start this program. */
int handover_open(char **argv)
{
    struct program program = {
        .path = (const char *)(uintptr_t)getauxval(AT_EXECFN),
        .argv = argv,
        .server = getpid(),
    };
    int sockets[2], on = 1;
    bool good;

    sigprocmask(SIG_BLOCK, NULL, &program.signals);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return -1;
    good = setsockopt(sockets[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
           helper_process_start("handover", sockets[1], serve, &program, HELPER_PROCESS_EXECUTES);
    close(sockets[1]);
    if (good)
        return sockets[0];
    close(sockets[0]);
    return -1;
}

static bool send_listener(int helper, enum kind kind, const struct listener *listener)
{
    const struct message message = {kind, listener->streams, listener->adopted};

    return fd_message_send(helper, &message, sizeof message, listener->sockets, listener->count);
}

bool handover_refuse(int helper, const struct listener *listener)
{
    char answer = 0;

    return helper >= 0 && send_listener(helper, KIND_REFUSE, listener) &&
           recv(helper, &answer, 1, 0) == 1 && answer != 0;
}

bool handover_pass(int helper, const struct listener *listener)
{
    return send_listener(helper, KIND_PASS, listener);
}

bool handover_start(int helper, int channel)
{
    const struct message message = {.kind = KIND_START};
    const int descriptors[3] = {STDOUT_FILENO, STDERR_FILENO, channel};

    return fd_message_send(helper, &message, sizeof message, descriptors, 3);
}
