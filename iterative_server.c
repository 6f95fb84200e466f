/* One connection at a time: who accepts it serves it, and all others wait. */
#include "common/server.h"

static struct server *server;

static const struct model model = {
    .name = "iterative_server",
    .summary = "one connection at a time",
    .advice = "Take it to learn, to measure what all other models add, or where one client at a "
              "time is a promise. Do not take it for anybody who may be slow: all others wait.",
    .max_connections = 1,
    .descriptors = 2,
    .lasting = true,
};

int main(int argc, char **argv)
{
    struct server local;
    int socket;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    while ((socket = server_accept(server)) >= 0) {
        server_serve(server, socket);
        server_left(server);
    }
    return server_close(server);
}
