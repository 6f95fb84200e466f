/* A ring for each processor: a process that has the kernel receive and send for all its
 * connections.
 *
 * A ring (io_uring) is a pair of queues in memory that the process and the kernel share. Into one,
 * the process writes what it wants done: receive from this socket, send these bytes, say when that
 * descriptor is ready. Into the other, the kernel writes what has been done, and with which result.
 * So one system call hands over many operations and takes many results, where an event loop of
 * epoll makes a call for each: epoll says that a socket is ready, and the process then receives;
 * a ring says that bytes have been received. The fewer calls, the less a request costs; but a
 * result that waits in the queue is late, and a buffer belongs to the kernel until its result is
 * there. A filter of system calls does not see what a ring does: so this one can open nothing.
 */
#include "common/workers/event_loop.h"
#include "common/workers/poller_uring.h"
#include "common/workers/process_crew.h"

static const struct model model = {
    .name = "uring_server",
    .summary = "a ring (io_uring) for each processor",
    .take = "for many busy connections, where Linux 6.1 or later may use io_uring",
    .avoid = "where io_uring is forbidden, as in most containers; where connections end after one "
             "request, epoll_server costs the same",
    .served_by = BY_WORKER_PROCESS,
    .max_connections = 16384,
    .descriptors = 1, /* few connections send a file at the same time */
    .workers_per_processor = 1,
    .accepts = 1U << ACCEPT_FEW | 1U << ACCEPT_SHARED | 1U << ACCEPT_REUSEPORT,
    .rings = true,
    .children = &process_crew_children,
};

static void work(struct worker *worker)
{
    event_loop_run(worker, &poller_uring);
}

int main(int argc, char **argv)
{
    struct server server;

    if (!server_open(&server, &model, argc, argv))
        return server.exit_status;
    if (!process_crew_start(&server, work, NULL))
        return server.exit_status;
    server_watch(&server);
    return server_close(&server);
}
