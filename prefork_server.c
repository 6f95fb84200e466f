/* A fixed number of worker processes: each accepts a connection, serves it, and takes the next. */
#include "common/base/fd_passing.h"
#include "common/workers/accept_lock.h"
#include "common/workers/process_crew.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>

static struct server *server;

/* ---- lock and mutex: only the worker that holds the lock waits in accept ---- */

static struct accept_lock lock;

static bool open_lock(void)
{
    return accept_lock_open(&lock, server->options.accept == ACCEPT_MUTEX);
}

static int accept_with_lock(struct worker *worker)
{
    int socket;

    if (!accept_lock_take(&lock))
        return -1;
    socket = worker_accept(worker);
    accept_lock_give(&lock);
    return socket;
}

static void bury(pid_t process)
{
    accept_lock_bury(&lock, process);
}

/* ---- pass: the parent accepts, and passes the connection to a free worker ---- */

static struct fd_passing *channels; /* one for each worker */

static bool open_channels(void)
{
    channels = calloc((size_t)server->options.workers, sizeof *channels);
    for (int i = 0; channels != NULL && i < server->options.workers; i++)
        if (!fd_passing_open(&channels[i]))
            return false;
    return channels != NULL;
}

/* Assigns a connection to a free worker, and returns its number; or -1. There are never more
 * connections than workers, so one is free, unless the count is wrong since a worker was killed
 * while it counted. It may be dead: then its replacement takes the connection. */
static int assign(void)
{
    for (int living = 1; living >= 0; living--)
        for (int i = 0; i < server->options.workers; i++)
            if ((!living || process_crew_lives(server, i)) && server_assign(server, i))
                return i;
    errno = EAGAIN;
    return -1;
}

static void hand_over(int socket)
{
    int number;

    while ((number = assign()) < 0)
        if (!server_hold(server, socket, "cannot find a free worker"))
            return;
    if (fd_passing_give(&channels[number], socket))
        return;
    server_unassign(server, number);
    server_drop(server, socket);
}

static void hand_out(void)
{
    int socket;

    while ((socket = server_accept(server)) >= 0)
        hand_over(socket);
    for (int i = 0; i < server->options.workers; i++)
        fd_passing_end(&channels[i]);
}

static bool is_pending(int number)
{
    return fd_passing_pending(&channels[number]);
}

static int take_passed(struct worker *worker)
{
    int socket = fd_passing_take(&channels[worker->number]);

    if (socket >= 0)
        worker_take(worker, worker->slot->seat);
    return socket;
}

/* Each way to accept: what it needs, and how a worker gets its next connection. */
static const struct {
    bool (*open)(void);
    int (*next)(struct worker *worker);
    struct process_crew_calls calls;
} ways[ACCEPT_WAYS] = {
    [ACCEPT_SHARED] = {.next = worker_accept},
    [ACCEPT_LOCK] = {open_lock, accept_with_lock, {0}},
    [ACCEPT_MUTEX] = {open_lock, accept_with_lock, {.bury = bury}},
    [ACCEPT_PASS] = {open_channels, take_passed, {.is_pending = is_pending}},
    [ACCEPT_REUSEPORT] = {.next = worker_accept},
};

static void work(struct worker *worker)
{
    int socket;

    while ((socket = ways[server->options.accept].next(worker)) >= 0)
        worker_serve(worker, socket);
}

static const struct model model = {
    .name = "prefork_server",
    .summary = "a fixed number of worker processes",
    .take = "for short connections that must be isolated from each other: fork is paid once",
    .avoid = "for clients that keep their connections open: each occupies a process",
    .served_by = BY_WORKER_PROCESS,
    .defers = true,
    .workers_per_processor = 4,
    .accepts = 1U << ACCEPT_SHARED | 1U << ACCEPT_LOCK | 1U << ACCEPT_MUTEX | 1U << ACCEPT_PASS |
               1U << ACCEPT_REUSEPORT,
    .children = &process_crew_children,
};

int main(int argc, char **argv)
{
    struct server local;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    if (ways[server->options.accept].open != NULL && !ways[server->options.accept].open())
        err(1, "cannot prepare the workers");
    if (!process_crew_start(server, work, &ways[server->options.accept].calls))
        return server->exit_status;
    if (server->options.accept == ACCEPT_PASS)
        hand_out();
    else
        server_watch(server);
    return server_close(server);
}
