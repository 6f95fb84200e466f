/* Forks the children of a server from a small process, which the server keeps beside it. */
#include "common/workers/fork_template.h"

#include "common/base/ballast.h"
#include "common/base/clone_child.h"
#include "common/base/fd_message.h"

#include <err.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The data of its connection that a child needs, beside the socket. */
struct task {
    int seat;
    uint32_t number; /* for the trace */
    struct moment now;
};

/* In the template and its children. */
struct maker {
    struct server *server;
    void (*serve)(int socket);
    int socket; /* to the server */
};

struct work {
    const struct maker *maker;
    struct task task;
    int socket;
};

static void work(const void *argument)
{
    const struct work *work = argument;
    struct server *server = work->maker->server;

    prctl(PR_SET_NAME, program_invocation_short_name, 0, 0, 0);
    close(work->maker->socket);
    trace_begin_clone(server->context.trace);
    server->seat = work->task.seat;
    server->number = work->task.number;
    server->now = work->task.now;
    work->maker->serve(work->socket);
}

/* Returns the child's id, or the negative error. */
static pid_t make_child(const struct maker *maker, struct task task, int socket)
{
    const struct work work_of_child = {maker, task, socket};
    pid_t child;

    if (maker->server->context.log != NULL)
        access_log_renew(maker->server->context.log);
    child = clone_child(work, &work_of_child, sizeof work_of_child);
    return child < 0 ? -errno : child;
}

/* Makes a child for the socket that comes next. Returns its id or the negative error; 0 once the
 * server has closed its end. */
static pid_t make_next(const struct maker *maker)
{
    struct fd_message message;
    struct task task;
    size_t size;
    pid_t child;

    if (!fd_message_receive(maker->socket, &task, sizeof task, &size, &message))
        return 0;
    child = message.count == 1 && size == sizeof task
                ? make_child(maker, task, message.descriptors[0])
                : -EMFILE;
    fd_message_close(&message);
    return child;
}

static bool answer(const struct maker *maker, pid_t number)
{
    return send(maker->socket, &number, sizeof number, MSG_NOSIGNAL) == sizeof number;
}

/* The children are those of the server, which reaps them. The template keeps no port open. It says
 * first that it is ready, or why not. */
static _Noreturn void run(const struct maker *maker)
{
    pid_t child;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "template", 0, 0, 0);
    listener_leave_streams(&maker->server->listener);
    clone_child_note(&maker->server->board->template_child);
    if (answer(maker, clone_child_open(CLONE_PARENT, 0, 0) ? 0 : -errno))
        while ((child = make_next(maker)) != 0 && answer(maker, child))
            ;
    _exit(0);
}

/* Returns the answer of the template; `otherwise` if there is none. */
static pid_t hear(const struct fork_template *template, pid_t otherwise)
{
    pid_t number;

    return recv(template->socket, &number, sizeof number, 0) == sizeof number ? number : otherwise;
}

/* Returns false, with errno set, if it fails. */
static bool start(struct fork_template *template, struct server *server, void (*serve)(int socket))
{
    int pair[2];
    pid_t error;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    ballast_inherit(server->memory.ballast, server->options.ballast, false);
    template->process = fork();
    ballast_inherit(server->memory.ballast, server->options.ballast, true);
    if (template->process == 0) {
        close(pair[0]);
        run(&(const struct maker){server, serve, pair[1]});
    }
    template->socket = pair[0];
    close(pair[1]);
    if (template->process < 0)
        return false;
    error = hear(template, -ECHILD);
    errno = -error;
    return error == 0;
}

void fork_template_open(struct fork_template *template, struct server *server,
                        void (*serve)(int socket))
{
    if (!server->options.template)
        return;
    if (!start(template, server, serve))
        err(1, "cannot make the template");
    server_ready(server);
}

static bool is_death(int error)
{
    return error == EPIPE || error == ECONNRESET || error == ENOTCONN;
}

/* Returns the child's id, or the negative error; 0 if the template has died without making the
 * child. If it died after that, the kernel has noted the id. */
static pid_t ask(const struct fork_template *template, const struct server *server, int socket)
{
    const struct task task = {server->seat, server->number, server->now};
    pid_t child;

    atomic_store(&server->board->template_child, 0);
    if (!fd_message_send(template->socket, &task, sizeof task, &socket, 1))
        return is_death(errno) ? 0 : -errno;
    child = hear(template, 0);
    return child != 0 ? child : atomic_load(&server->board->template_child);
}

pid_t fork_template_fork(struct fork_template *template, struct server *server, int socket)
{
    pid_t child = template->socket > 0 ? ask(template, server, socket) : 0;

    if (child < 0) {
        errno = -child;
        return -1;
    }
    if (child > 0)
        return child;
    if (template->socket > 0) {
        warnx("the template has died: this process forks by itself");
        fork_template_close(template);
    }
    return _Fork();
}

bool fork_template_reap(struct fork_template *template, pid_t child)
{
    if (template->process != child)
        return false;
    template->process = 0;
    return true;
}

void fork_template_close(struct fork_template *template)
{
    if (template->socket > 0)
        close(template->socket);
    template->socket = 0;
}
