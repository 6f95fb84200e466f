/* Hands listening sockets to the program that follows a server, and starts that program. */
#include "common/net/listener_handover.h"

#include "common/base/fd_message.h"
#include "common/base/helper_process.h"
#include "common/net/address.h"
#include "common/net/listener_open.h"
#include "common/net/silent_clients.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tells the new program what it was passed: its process, listeners, TCP and UDP sockets of each,
 * and whether they belong to a service manager. The sockets stand in this order; the channel
 * follows.
 */
#define VARIABLE         "SERVER_HANDOVER"
#define FIRST_DESCRIPTOR (STDERR_FILENO + 1)
#define PATIENCE_SECONDS 5 /* for an answer */

/* ---- the new program ---- */

static bool read_variable(const char *text, struct listener_handover *handover)
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

struct listener_handover listener_handover_take(void)
{
    struct listener_handover handover = {0};
    bool given = read_variable(getenv(VARIABLE), &handover);

    unsetenv(VARIABLE);
    if (!given)
        return (struct listener_handover){.channel = -1};
    handover.channel =
        FIRST_DESCRIPTOR + handover.listeners * (handover.streams + handover.datagrams);
    for (int i = FIRST_DESCRIPTOR; i <= handover.channel; i++)
        fcntl(i, F_SETFD, FD_CLOEXEC);
    return handover;
}

bool listener_handover_get(const struct listener_handover *handover, int number,
                           struct listener *listener)
{
    int count = handover->streams + handover->datagrams;

    return listener_inherit(listener, FIRST_DESCRIPTOR + number * count, handover->streams,
                            handover->datagrams, handover->adopted);
}

/* ---- messages ---- */

bool listener_handover_send(int socket, const struct listener_handover_message *message)
{
    return send(socket, message, sizeof *message, MSG_NOSIGNAL) == (ssize_t)sizeof *message;
}

bool listener_handover_receive(int socket, struct listener_handover_message *message,
                               enum listener_handover_kind end)
{
    ssize_t length = recv(socket, message, sizeof *message, MSG_DONTWAIT);

    if (length == (ssize_t)sizeof *message)
        return true;
    *message = (struct listener_handover_message){.kind = end};
    return length >= 0 || errno != EAGAIN;
}

/* ---- the process that starts it ---- */

struct program {
    const char *path;
    char **argv;
    sigset_t signals; /* that were blocked when the server was started */
    pid_t server;
};

/* The description that comes with a listener, or with the output of the server. */
struct passed {
    int streams; /* how many sockets are TCP, the first ones; 0: these are the output */
    int adopted; /* not a bool: no byte of a message is undefined */
};

struct helper {
    const struct program *program;
    int server;  /* the socket to the server */
    int channel; /* to the program that was started; -1: none */
    unsigned number;
    int output[2]; /* the standard output and the standard error of the server */
    struct listener *listeners;
    int count;
};

static void keep(struct helper *helper, const struct passed *passed, struct fd_message *sockets)
{
    size_t count = (size_t)helper->count + 1;
    struct listener *grown = NULL, *added;

    if (passed->streams == 0) {
        memcpy(helper->output, sockets->descriptors, sizeof helper->output);
        return;
    }
    if (sockets->count <= LISTENER_SOCKETS)
        grown = realloc(helper->listeners, count * sizeof *grown);
    if (grown == NULL) {
        fd_message_close(sockets);
        return;
    }
    helper->listeners = grown;
    added = &grown[helper->count++];
    *added = (struct listener){
        .count = sockets->count, .streams = passed->streams, .adopted = passed->adopted};
    memcpy(added->sockets, sockets->descriptors, (size_t)sockets->count * sizeof(int));
}

static void refuse(const struct helper *helper)
{
    struct listener_handover_message answer = {.kind = LISTENER_HANDOVER_REFUSE};

    for (int i = 0; i < helper->count; i++)
        if (!listener_refuse(&helper->listeners[i]))
            answer.error = EPERM;
    listener_handover_send(helper->server, &answer);
}

/* All sockets have one port. */
static void look_for_silent(const struct helper *helper)
{
    struct listener_handover_message answer = {.kind = LISTENER_HANDOVER_SILENT};
    union address address = {0};
    socklen_t length = sizeof address;

    if (helper->count > 0 &&
        getsockname(helper->listeners[0].sockets[0], &address.any, &length) == 0 &&
        silent_clients_exist(address_port(&address)))
        answer.error = EAGAIN;
    listener_handover_send(helper->server, &answer);
}

static void set_environment(const struct helper *helper)
{
    const struct listener *first = helper->listeners;
    char text[80];

    snprintf(text, sizeof text, "%d %d %d %d %d", (int)getpid(), helper->count, first->streams,
             first->count - first->streams, first->adopted);
    setenv(VARIABLE, text, 1);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
}

/* Becomes the program. The descriptors were received in rising order, so that none is overwritten
 * before it has been moved. Until the program handles signals, another one must not end it. */
static void become(const struct helper *helper, int channel)
{
    const struct program *program = helper->program;
    struct listener_handover_message failed = {.kind = LISTENER_HANDOVER_FAILED};
    int next = FIRST_DESCRIPTOR;

    dup2(helper->output[0], STDOUT_FILENO);
    dup2(helper->output[1], STDERR_FILENO);
    for (int i = 0; i < helper->count; i++)
        for (int j = 0; j < helper->listeners[i].count; j++)
            dup2(helper->listeners[i].sockets[j], next++);
    dup2(channel, next);
    close_range((unsigned)next + 1, ~0U, 0);
    set_environment(helper);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_SETMASK, &program->signals, NULL);
    execv(program->path, program->argv);
    failed.error = errno;
    listener_handover_send(next, &failed);
    _exit(1);
}

/* Forks twice: nobody has to reap the program. */
static bool fork_program(const struct helper *helper, int channel)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        child = fork();
        if (child == 0)
            become(helper, channel);
        _exit(child < 0 ? errno : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
    return errno == 0;
}

/* Tells the program, and forgets it. */
static void tell_program(struct helper *helper, const struct listener_handover_message *message)
{
    if (helper->channel < 0)
        return;
    listener_handover_send(helper->channel, message);
    close(helper->channel);
    helper->channel = -1;
}

static void start(struct helper *helper, unsigned number)
{
    struct listener_handover_message failed = {.kind = LISTENER_HANDOVER_FAILED, .number = number};
    int ends[2] = {-1, -1};

    tell_program(helper, &(struct listener_handover_message){.kind = LISTENER_HANDOVER_STOP});
    helper->number = number;
    if (helper->count > 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 &&
        fork_program(helper, ends[1])) {
        helper->channel = ends[0];
    } else {
        failed.error = errno;
        listener_handover_send(helper->server, &failed);
        close(ends[0]);
    }
    close(ends[1]);
}

/* Passes on what the program has told. */
static void hear_program(struct helper *helper)
{
    struct listener_handover_message message;

    if (!listener_handover_receive(helper->channel, &message, LISTENER_HANDOVER_FAILED))
        return;
    message.number = helper->number;
    listener_handover_send(helper->server, &message);
    if (message.kind != LISTENER_HANDOVER_FAILED)
        return;
    close(helper->channel);
    helper->channel = -1;
}

/* Obeys the first process of the server. Returns false at the end of all processes that could ask.
 */
static bool hear_server(struct helper *helper)
{
    union {
        struct listener_handover_message message;
        struct passed passed;
    } asked;
    struct fd_message got;
    size_t size;

    if (!fd_message_receive(helper->server, &asked, sizeof asked, &size, &got))
        return false;
    if (got.sender != helper->program->server)
        fd_message_close(&got);
    else if (got.count > 0 && size == sizeof asked.passed)
        keep(helper, &asked.passed, &got);
    else if (size != sizeof asked.message)
        return true;
    else if (asked.message.kind == LISTENER_HANDOVER_REFUSE)
        refuse(helper);
    else if (asked.message.kind == LISTENER_HANDOVER_SILENT)
        look_for_silent(helper);
    else if (asked.message.kind == LISTENER_HANDOVER_START)
        start(helper, asked.message.number);
    else if (asked.message.number == helper->number)
        tell_program(helper, &asked.message);
    return true;
}

static void serve(int socket, const void *argument)
{
    struct helper helper = {.program = argument, .server = socket, .channel = -1};
    bool goes_on = true;

    while (goes_on) {
        struct pollfd waits[] = {
            {.fd = helper.server, .events = POLLIN},
            {.fd = helper.channel, .events = POLLIN},
        };
        poll(waits, 2, -1);
        if (waits[1].revents != 0)
            hear_program(&helper);
        if (waits[0].revents != 0)
            goes_on = hear_server(&helper);
    }
    free(helper.listeners);
}

/* ---- the server ---- */

/* The path is that by which the kernel was told to start this program. */
int listener_handover_open(char **argv)
{
    struct program program = {
        .path = (const char *)(uintptr_t)getauxval(AT_EXECFN),
        .argv = argv,
        .server = getpid(),
    };
    const int output[2] = {STDOUT_FILENO, STDERR_FILENO};
    const struct passed passed = {0};
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int sockets[2], on = 1;
    bool good;

    sigprocmask(SIG_BLOCK, NULL, &program.signals);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return -1;
    good = setsockopt(sockets[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
           setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           helper_process_start("handover", sockets[1], serve, &program, HELPER_PROCESS_EXECUTES) &&
           fd_message_send(sockets[0], &passed, sizeof passed, output, 2);
    close(sockets[1]);
    if (good)
        return sockets[0];
    close(sockets[0]);
    return -1;
}

bool listener_handover_pass(int helper, const struct listener *listener)
{
    const struct passed passed = {listener->streams, listener->adopted};

    return fd_message_send(helper, &passed, sizeof passed, listener->sockets, listener->count);
}

/* Returns the error of the answer; -1: there is none. Earlier messages of the process are skipped.
 * A process that did not answer in time is not waited for again. */
static int ask(int helper, enum listener_handover_kind kind)
{
    struct listener_handover_message message = {.kind = kind};

    if (helper < 0 || !listener_handover_send(helper, &message))
        return -1;
    do
        if (recv(helper, &message, sizeof message, 0) != (ssize_t)sizeof message) {
            shutdown(helper, SHUT_RD);
            return -1;
        }
    while (message.kind != kind);
    return message.error;
}

bool listener_handover_refuse(int helper)
{
    return ask(helper, LISTENER_HANDOVER_REFUSE) == 0;
}

bool listener_handover_finds_silent(int helper)
{
    return ask(helper, LISTENER_HANDOVER_SILENT) == EAGAIN;
}
