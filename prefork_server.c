/* A fixed crew of processes: each accepts a connection, serves it to its end, and takes the next.
 */
#include "common/channel.h"
#include "common/crew.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct server *server;

/* ---- lock: only the worker that holds a file lock waits in accept ---- */

static int lock_file;

static bool open_lock(void)
{
    lock_file = memfd_create("accept", MFD_CLOEXEC);
    return lock_file >= 0;
}

static int accept_with_lock(struct worker *worker)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int socket;

    while (fcntl(lock_file, F_SETLKW, &lock) < 0)
        if (errno != EINTR)
            return -1;
    socket = worker_accept(worker);
    lock.l_type = F_UNLCK;
    fcntl(lock_file, F_SETLK, &lock);
    return socket;
}

/* ---- mutex: only the one that holds a mutex in shared memory does ---- */

static pthread_mutex_t *mutex;

static bool open_mutex(void)
{
    pthread_mutexattr_t attributes;

    mutex = mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mutex == MAP_FAILED)
        return false;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    return pthread_mutex_init(mutex, &attributes) == 0;
}

static int accept_with_mutex(struct worker *worker)
{
    int socket;

    if (pthread_mutex_lock(mutex) == EOWNERDEAD)
        pthread_mutex_consistent(mutex); /* its owner died, and left nothing torn behind */
    socket = worker_accept(worker);
    pthread_mutex_unlock(mutex);
    return socket;
}

/* ---- pass: the parent accepts, and passes the connection to a worker that is free ---- */

static struct channel *channels; /* one for each worker */

static bool open_channels(void)
{
    int workers = server->options.workers;

    channels = calloc((size_t)workers, sizeof *channels);
    for (int i = 0; channels != NULL && i < workers; i++)
        if (!channel_open(&channels[i]))
            return false;
    return channels != NULL;
}

/* There are never more connections than workers, so one is free. */
static void hand_over(int socket)
{
    int number = 0;

    while (!server_assign(server, number))
        number = (number + 1) % server->options.workers;
    channel_give(&channels[number], socket);
}

static void hand_out(void)
{
    int socket;

    while ((socket = server_accept(server)) >= 0)
        hand_over(socket);
    for (int i = 0; i < server->options.workers; i++)
        channel_end(&channels[i]);
}

static int take_passed(struct worker *worker)
{
    int socket = channel_take(&channels[worker->number]);

    if (socket >= 0)
        worker_take(worker);
    return socket;
}

/* ---- */

static const struct {
    bool (*open)(void);
    int (*next)(struct worker *worker);
} ways[ACCEPT_WAYS] = {
    [ACCEPT_SHARED] = {.next = worker_accept},        [ACCEPT_LOCK] = {open_lock, accept_with_lock},
    [ACCEPT_MUTEX] = {open_mutex, accept_with_mutex}, [ACCEPT_PASS] = {open_channels, take_passed},
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
    .summary = "a fixed crew of processes",
    .advice = "Take it where connections are short and must be kept apart: the price of fork is "
              "paid once. Do not take it for clients that stay: each holds a whole process.",
    .makes = "processes",
    .lasting = true,
    .crew = 4,
    .accepts = 1U << ACCEPT_SHARED | 1U << ACCEPT_LOCK | 1U << ACCEPT_MUTEX | 1U << ACCEPT_PASS |
               1U << ACCEPT_REUSEPORT,
    .supervises = true,
    .collect = crew_collect,
};

int main(int argc, char **argv)
{
    struct server local;

    server = &local;
    if (!server_open(server, &model, argc, argv))
        return server->exit_status;
    if (ways[server->options.accept].open != NULL && !ways[server->options.accept].open())
        err(1, "cannot make ready for --accept %s", options_way(server->options.accept));
    if (!crew_start(server, work))
        return server->exit_status;
    if (server->options.accept == ACCEPT_PASS)
        hand_out();
    else
        server_watch(server);
    return server_close(server);
}
