/* One connection at a time: the process accepts and serves it, and all others wait. */
#include "common/server.h"

static const struct model model = {
    .name = "iterative_server",
    .summary = "one connection at a time",
    .take = "to learn, to measure what other models add, or to serve one client at a time",
    .avoid = "for clients that may be slow: all others wait",
    .served_by = BY_MAIN,
    .max_connections = 1,
    .descriptors = 2,
    .defers = true,
};

int main(int argc, char **argv)
{
    struct server server;
    int socket;

    if (!server_open(&server, &model, argc, argv))
        return server.exit_status;
    while ((socket = server_accept(&server)) >= 0) {
        server_serve(&server, socket);
        server_left(&server);
    }
    return server_close(&server);
}
