/* An event loop for each processor: a process that serves those of its connections that are ready.
 */
#include "common/workers/event_loop.h"
#include "common/workers/poller_epoll.h"
#include "common/workers/process_crew.h"

static const struct model model = {
    .name = "epoll_server",
    .summary = "an event loop for each processor",
    .take = "for many mostly idle connections: each costs about 2 KiB, with the kernel's share",
    .avoid = "where serving may block: all other connections of the loop wait",
    .served_by = BY_WORKER_PROCESS,
    .max_connections = 16384,
    .descriptors = 1, /* few connections send a file at the same time */
    .workers_per_processor = 1,
    .accepts = 1U << ACCEPT_FEW | 1U << ACCEPT_SHARED | 1U << ACCEPT_REUSEPORT,
    .children = &process_crew_children,
};

static void work(struct worker *worker)
{
    event_loop_run(worker, &poller_epoll);
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
