/* One process per connection: the parent accepts and forks, the child serves and ends. */
#include "common/workers/fork_template.h"

#include <sys/wait.h>
#include <unistd.h>

static struct server *server;
static struct fork_template template;
static int children;

static void serve(int socket)
{
    server_child(server);
    server_serve(server, socket);
    server_left(server);
    _exit(0);
}

/* _Fork() is fork() without the handlers of libraries: they would write to pages that the child
 * then has to copy. */
static bool hand_over(int socket)
{
    pid_t child =
        server->options.template ? fork_template_fork(&template, server, socket) : _Fork();

    if (child < 0)
        return false;
    if (child == 0)
        serve(socket);
    close(socket);
    children++;
    server_made_child(server, child);
    return true;
}

/* A child that exits with status 0 has reported the end of its connection itself. An orphan that
 * this process has adopted is reaped, but not awaited. */
static int collect(struct server *self, bool ending)
{
    pid_t child;
    int status;

    while ((child = waitpid(-1, &status, WNOHANG)) > 0)
        if (!fork_template_reap(&template, child) &&
            (status == 0 || server_lost_child(self, child)))
            children -= children > 0;
    if (child < 0)
        children = 0;
    if (ending)
        return children > 0 || template.process > 0 ? SERVER_COLLECT_SOON : -1;
    return children > 0 || server_has_clients(self) ? SERVER_COLLECT_SOON : -1;
}

static const struct model model = {
    .name = "fork_server",
    .summary = "one process per connection",
    .take = "where a crash or a leak of one connection must not affect others",
    .avoid = "for many short connections: a fork costs more than the request",
    .served_by = BY_CHILD,
    .max_connections = 1024,
    .descriptors = 0,
    .has_template = true,
    .children = &(const struct model_children){.collect = collect},
};

int main(int argc, char **argv)
{
    struct server local;
    int socket;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    fork_template_open(&template, server, serve);
    while ((socket = server_accept(server)) >= 0)
        while (!hand_over(socket) && server_hold(server, socket, "cannot fork"))
            ;
    fork_template_close(&template);
    return server_close(server);
}
