/* One thread per connection: the main thread accepts and makes a thread, which serves and ends. */
#include "common/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

static struct server *server;

static void *serve(void *socket)
{
    server_serve(server, (int)(intptr_t)socket);
    server_left(server);
    return NULL;
}

static bool hand_over(int socket)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SERVER_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    errno = pthread_create(&thread, &attributes, serve, (void *)(intptr_t)socket);
    pthread_attr_destroy(&attributes);
    if (errno != 0)
        return false;
    server_made(server);
    return true;
}

static const struct model model = {
    .name = "thread_server",
    .summary = "one thread per connection",
    .take = "for up to a few thousand connections that share data, where simple blocking code is "
            "worth more than the last microsecond",
    .avoid = "where one bad connection must not end the others: a crash ends all threads",
    .served_by = BY_THREAD,
    .max_connections = 4096,
    .descriptors = 2,
};

int main(int argc, char **argv)
{
    static struct server local; /* threads may outlive this function */
    int socket;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    while ((socket = server_accept(server)) >= 0)
        while (!hand_over(socket) && server_hold(server, socket, "cannot make a thread"))
            ;
    return server_close(server);
}
