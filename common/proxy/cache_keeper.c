/* Trims the cache in a process of its own, and asks for a new server if the directory is gone. */
#include "common/proxy/cache_keeper.h"

#include "common/base/clock.h"
#include "common/base/fd_message.h"
#include "common/proxy/cache_evict.h"
#include "common/proxy/cache_shared.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long a process that finds the disk full waits for room. It is short: its other clients wait,
 * too. */
#define ROOM_NANOSECONDS 1500000
/* How often the directory is looked at, and how soon another server is asked for. */
#define LOOK_MILLISECONDS  1000
#define AGAIN_MILLISECONDS 60000

/* Requests that all processes of the server share. A worker that was taken over may have written
 * anything there. */
struct requests {
    _Atomic bool asked;      /* there is something to do */
    _Atomic uint64_t room;   /* bytes that the next round removes in any case */
    _Atomic uint32_t rounds; /* that have ended: a futex */
};

/* Each process has a copy. */
struct cache_keeper {
    int socket;   /* to the process, which looks for requests at each message */
    pid_t server; /* the process that it asks for another server */
    struct helper_process_confinement confinement;
    struct requests *requests;
};

/* The state of the process itself. */
struct work {
    struct cache cache;
    int socket;
};

/* ---- the process ---- */

static void wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* If the process dies in a round, whoever needs the rest asks for it again. */
static void do_round(const struct cache *cache)
{
    struct requests *requests = cache->keeper->requests;
    uint64_t room;

    if (!atomic_exchange(&requests->asked, false))
        return;
    room = atomic_exchange(&requests->room, 0);
    if (room > 0)
        cache_evict_make_room(cache, room);
    else
        cache_evict_trim(cache);
    atomic_fetch_add(&requests->rounds, 1);
    wake_all(&requests->rounds);
}

bool cache_keeper_misses_directory(const struct cache *cache)
{
    struct stat status;

    return fstat(cache->directory, &status) == 0 && status.st_nlink == 0;
}

/* Returns when the directory is to be looked at again, in monotonic milliseconds. */
static int64_t look_at_directory(const struct cache *cache)
{
    bool missing = cache_keeper_misses_directory(cache);

    if (missing)
        kill(cache->keeper->server, SIGUSR2);
    return clock_now().milliseconds + (missing ? AGAIN_MILLISECONDS : LOOK_MILLISECONDS);
}

/* Looks for requests before it waits: the process before it may have died without doing so. */
static void keep(const void *argument)
{
    const struct work *work = argument;
    struct pollfd wait = {.fd = work->socket, .events = POLLIN};
    int64_t look = clock_now().milliseconds;
    char message;

    helper_process_confine(&work->cache.keeper->confinement, HELPER_PROCESS_WORKER);
    do {
        int64_t now = clock_now().milliseconds;
        do_round(&work->cache);
        if (now >= look)
            look = look_at_directory(&work->cache);
    } while (poll(&wait, 1, LOOK_MILLISECONDS) == 0 || recv(work->socket, &message, 1, 0) == 1);
}

/* The directory comes as the first message, and gets the number that it has in the server. */
static bool take_directory(struct work *work)
{
    const int number = work->cache.directory;
    struct fd_message message = {.count = 0};
    char nothing;
    size_t size;
    int given;

    if (work->socket == number)
        work->socket = dup(work->socket);
    if (!fd_message_receive(work->socket, &nothing, 1, &size, &message) || message.count != 1)
        return false;
    given = message.descriptors[0];
    if (given == number)
        return true;
    if (dup2(given, number) < 0)
        return false;
    close(given);
    return true;
}

/* The shared file may become shorter: SIGBUS is handled here, too. */
static void supervise(int socket, const void *argument)
{
    struct work work = {.cache = *(const struct cache *)argument, .socket = socket};

    cache_shared_hear_faults();
    if (!take_directory(&work))
        return;
    helper_process_confine(&work.cache.keeper->confinement, HELPER_PROCESS_SUPERVISOR);
    helper_process_supervise(
        work.socket, &(struct helper_process_crew){.count = 1, .work = keep, .argument = &work});
}

/* ---- the server ---- */

static bool start(const struct cache *cache)
{
    struct cache_keeper *keeper = cache->keeper;
    int ends[2];
    bool started;

    keeper->requests = mmap(NULL, sizeof *keeper->requests, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (keeper->requests == MAP_FAILED)
        return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    keeper->socket = ends[0];
    started = helper_process_start("cache_keeper", ends[1], supervise, cache, HELPER_PROCESS_ONLY);
    close(ends[1]);
    return started && fd_message_send(ends[0], "", 1, &cache->directory, 1);
}

bool cache_keeper_open(struct cache *cache, const struct helper_process_confinement *confinement)
{
    struct cache_keeper *keeper =
        mmap(NULL, sizeof *keeper, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (keeper != MAP_FAILED) {
        cache->keeper = keeper;
        *keeper = (struct cache_keeper){
            .socket = -1, .server = getpid(), .confinement = *confinement, .requests = MAP_FAILED};
        if (start(cache))
            return true;
    }
    warn("cannot make a process that keeps the cache below its limit");
    return false;
}

void cache_keeper_close(struct cache *cache)
{
    if (cache->keeper == NULL)
        return;
    if (cache->keeper->socket >= 0)
        close(cache->keeper->socket);
    if (cache->keeper->requests != MAP_FAILED)
        munmap(cache->keeper->requests, sizeof *cache->keeper->requests);
    munmap(cache->keeper, sizeof *cache->keeper);
    cache->keeper = NULL;
}

/* Returns false if there is no process to ask. If no further message fits, it will read those that
 * are there, and look for requests. */
static bool ask(const struct cache *cache)
{
    const struct cache_keeper *keeper = cache->keeper;

    if (keeper == NULL)
        return false;
    atomic_store(&keeper->requests->asked, true);
    return send(keeper->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 || errno == EAGAIN;
}

void cache_keeper_trim(const struct cache *cache)
{
    if (!ask(cache))
        cache_evict_trim(cache);
}

bool cache_keeper_make_room(const struct cache *cache, uint64_t bytes)
{
    const struct timespec patience = {.tv_nsec = ROOM_NANOSECONDS};
    struct requests *requests = cache->keeper != NULL ? cache->keeper->requests : NULL;
    uint32_t rounds;

    if (requests == NULL)
        return cache_evict_make_room(cache, bytes);
    rounds = atomic_load(&requests->rounds);
    atomic_fetch_add(&requests->room, bytes);
    if (!ask(cache))
        return cache_evict_make_room(cache, bytes);
    syscall(SYS_futex, &requests->rounds, FUTEX_WAIT, rounds, &patience, NULL, 0);
    return atomic_load(&requests->rounds) != rounds;
}
