/* One child per connection, which shares what --share names: fork() and pthread_create() are two
 * ends of one system call, clone(). */
#include "common/base/clone_child.h"
#include "common/server.h"
#include "common/trace.h"

#include <err.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signal handlers cannot be shared without memory, nor a thread group without signal handlers. */
static const int flags_of[SHARE_WAYS] = {
    [SHARE_NOTHING] = 0,
    [SHARE_FILES] = CLONE_FILES,
    [SHARE_FS] = CLONE_FS,
    [SHARE_MEMORY] = CLONE_VM,
    [SHARE_MEMORY_FILES] = CLONE_VM | CLONE_FILES,
    [SHARE_MEMORY_FILES_FS] = CLONE_VM | CLONE_FILES | CLONE_FS,
    [SHARE_MEMORY_FILES_FS_SIGNALS] = CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND,
    [SHARE_ALL] = CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
};

/* A copy of the state that a child needs: the server overwrites the original for its next
 * connection. */
struct task {
    int socket, seat;
    struct moment now;
    unsigned log_version; /* of the log that was open when the connection was accepted */
};

static struct server *server;
static int flags, children;
static int *sockets; /* of the seats, where children share open files */

static void serve_as(struct server *self, const struct task *task)
{
    trace_begin_clone(self->context.trace);
    if (flags & CLONE_THREAD)
        server_thread(self);
    else
        server_child(self);
    server_serve_at(self, &self->board->slots[0], task->seat, task->socket, task->now);
    server_left(self);
}

/* A child with its own table of open files may have another log file open than its parent: it needs
 * a state of its own. */
static void serve_with_own_files(const struct task *task)
{
    struct server copy = *server;
    struct access_log log;

    if (copy.context.log != NULL) {
        log = access_log_copy(copy.context.log, task->log_version);
        copy.context.log = &log;
    }
    serve_as(&copy, task);
}

static void serve(const void *argument)
{
    if ((flags & CLONE_VM) && !(flags & CLONE_FILES))
        serve_with_own_files(argument);
    else
        serve_as(server, argument);
}

static bool hand_over(int socket)
{
    const struct access_log *log = server->context.log;
    const struct task task = {socket, server->seat, server->now, log != NULL ? log->version : 0};
    pid_t child = clone_child(serve, &task, sizeof task);

    if (child < 0)
        return false;
    if (!(flags & CLONE_FILES))
        close(socket);
    else if (task.seat >= 0) /* the child closes it for both */
        sockets[task.seat] = socket;
    children++;
    server_made_child(server, child);
    return true;
}

static bool lose(struct server *self, pid_t child)
{
    int seat = seats_find_owner(&self->seats, child);

    if ((flags & CLONE_FILES) && seat >= 0)
        close(sockets[seat]);
    return server_lost_child(self, child);
}

/* A child that exits with status 0 has reported the end of its connection itself. An orphan that
 * this process has adopted is reaped, but not awaited. */
static int collect(struct server *self, bool ending)
{
    pid_t child;
    int status;

    if (flags & CLONE_THREAD)
        return -1;
    while ((child = waitpid(-1, &status, WNOHANG)) > 0)
        if (status == 0 || lose(self, child))
            children -= children > 0;
    if (child < 0)
        children = 0;
    return children > 0 || (!ending && server_has_clients(self)) ? SERVER_COLLECT_SOON : -1;
}

static const struct model model = {
    .name = "clone_server",
    .summary = "a child per connection, sharing what you choose",
    .take = "to see what each part of a process costs",
    .avoid = "as a server: a child that crashes can break the memory and the files that it shares",
    .served_by = BY_CHILD,
    .max_connections = 1024,
    .descriptors = 2, /* if it shares them */
    .shares = true,
    .children = &(const struct model_children){.collect = collect},
};

int main(int argc, char **argv)
{
    static struct server local; /* children that share memory may outlive this function */
    int socket;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    flags = flags_of[server->options.share];
    if (flags & CLONE_FILES)
        sockets = calloc((size_t)server->seats.count, sizeof *sockets);
    if (((flags & CLONE_FILES) && sockets == NULL) ||
        !clone_child_open(flags, (int)server->limit, SERVER_STACK_BYTES))
        err(1, "cannot make children that share");
    while ((socket = server_accept(server)) >= 0)
        while (!hand_over(socket) && server_hold(server, socket, "cannot make a child"))
            ;
    return server_close(server);
}
