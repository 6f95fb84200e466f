/* One process per connection: the parent accepts and forks, the child serves and ends. */
#include "common/server.h"

#include <sys/wait.h>
#include <unistd.h>

static struct server *server;

static bool hand_over(int socket)
{
    pid_t child = fork();

    if (child < 0)
        return false;
    if (child == 0) {
        server_child(server);
        server_serve(server, socket);
        server_left(server);
        _exit(0);
    }
    close(socket);
    server_made_child(server, child);
    return true;
}

/* A child that exits with status 0 has reported the end of its connection itself. */
static int collect(struct server *self, bool all)
{
    pid_t child;
    int status;

    while ((child = waitpid(-1, &status, all ? 0 : WNOHANG)) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            server_lost_child(self, child);
    return child == 0 ? SERVER_COLLECT_SOON : -1;
}

static const struct model model = {
    .name = "fork_server",
    .summary = "one process per connection",
    .take = "where a crash or a leak of one connection must not affect others",
    .avoid = "for many short connections: a fork costs more than the request",
    .max_connections = 1024,
    .descriptors = 0,
    .makes = "processes",
    .children = &(const struct model_children){.collect = collect},
};

int main(int argc, char **argv)
{
    struct server local;
    int socket;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    while ((socket = server_accept(server)) >= 0)
        while (!hand_over(socket) && server_hold(server, socket, "cannot fork"))
            ;
    return server_close(server);
}
