/* A fixed number of worker threads: each accepts a connection, serves it, and takes the next. */
#include "common/workers/worker.h"

#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct server *server;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- mutex: only the thread that holds it waits in accept ---- */

static int accept_with_mutex(struct worker *worker)
{
    int socket;

    pthread_mutex_lock(&mutex);
    socket = worker_accept(worker);
    pthread_mutex_unlock(&mutex);
    return socket;
}

/* ---- queue: the main thread accepts, and a free worker takes the connection out ---- */

static struct {
    pthread_cond_t filled;
    int *sockets; /* a ring, with room for all connections that there can be */
    uint64_t in, out;
    bool ended;
} queue = {.filled = PTHREAD_COND_INITIALIZER};

static bool open_queue(void)
{
    queue.sockets = calloc(server->limit, sizeof *queue.sockets);
    return queue.sockets != NULL;
}

static void fill_queue(void)
{
    int socket;

    while ((socket = server_accept(server)) >= 0) {
        pthread_mutex_lock(&mutex);
        queue.sockets[queue.in++ % server->limit] = socket;
        pthread_mutex_unlock(&mutex);
        pthread_cond_signal(&queue.filled);
    }
    pthread_mutex_lock(&mutex);
    queue.ended = true;
    pthread_mutex_unlock(&mutex);
    pthread_cond_broadcast(&queue.filled);
}

static int take_queued(struct worker *worker)
{
    int socket = -1;

    pthread_mutex_lock(&mutex);
    while (queue.in == queue.out && !queue.ended)
        pthread_cond_wait(&queue.filled, &mutex);
    if (queue.in != queue.out)
        socket = queue.sockets[queue.out++ % server->limit];
    pthread_mutex_unlock(&mutex);
    if (socket >= 0)
        worker_take(worker, seats_find(&server->seats, socket));
    return socket;
}

/* ---- */

static int (*const ways[ACCEPT_WAYS])(struct worker *worker) = {
    [ACCEPT_SHARED] = worker_accept,
    [ACCEPT_MUTEX] = accept_with_mutex,
    [ACCEPT_QUEUE] = take_queued,
    [ACCEPT_REUSEPORT] = worker_accept, /* each at its own listener */
};

static void *work(void *argument)
{
    struct worker worker = worker_begin(server, (int)(intptr_t)argument);
    int socket;

    while ((socket = ways[server->options.accept](&worker)) >= 0)
        worker_serve(&worker, socket);
    worker_end(&worker);
    server_worker_ended(server);
    return NULL;
}

static bool start(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SERVER_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < server->options.workers; i++) {
        server_worker_began(server);
        errno = pthread_create(&thread, &attributes, work, (void *)(intptr_t)i);
        if (errno != 0)
            return false;
    }
    pthread_attr_destroy(&attributes);
    return true;
}

static const struct model model = {
    .name = "pool_server",
    .summary = "a fixed number of worker threads",
    .take = "where the number of threads, and the memory that they take, must be bounded",
    .avoid = "for clients that keep their connections open: each occupies a thread",
    .served_by = BY_WORKER_THREAD,
    .descriptors = 2,
    .defers = true,
    .workers_per_processor = 4,
    .accepts =
        1U << ACCEPT_SHARED | 1U << ACCEPT_MUTEX | 1U << ACCEPT_QUEUE | 1U << ACCEPT_REUSEPORT,
};

int main(int argc, char **argv)
{
    static struct server local; /* threads may outlive this function */
    bool queued;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    queued = server->options.accept == ACCEPT_QUEUE;
    if ((queued && !open_queue()) || !start())
        err(1, "cannot make %d threads", server->options.workers);
    server_ready(server);
    if (queued)
        fill_queue();
    else
        server_watch(server);
    return server_close(server);
}
