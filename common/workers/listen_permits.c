/* Hands permits to listen to event loops, by their load and their connections. */
#include "common/workers/listen_permits.h"

#include "common/base/wakeup.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* How often the load of a loop is measured. */
#define REVIEW_MILLISECONDS 10
/* A loop that uses more than BUSY_PERCENT of a processor, or that requests block for more than this
 * share of the time, wants help; one below IDLE_PERCENT gives its permit up. Two loops that share
 * what was too much for one are each above IDLE_PERCENT. */
#define BUSY_PERCENT 70
#define IDLE_PERCENT 30
/* Persistent connections cannot move to another loop. So a loop passes its permit on when it has
 * this many more of them than another loop. */
#define AHEAD_LIMIT 2

static void set(struct listen_permits *permits, bool permitted)
{
    permits->permitted = permitted;
    atomic_store(&permits->worker->slot->listening, permitted);
}

/* A worker may die at any point: then there may be one permit more than are counted, but never
 * fewer. How busy the loop was before it took the permit does not count. */
bool listen_permits_take(struct listen_permits *permits)
{
    uint64_t one;

    permits->reviewed = 0;
    set(permits, true);
    if (read(permits->worker->server->permits, &one, sizeof one) < 0)
        set(permits, false);
    return permits->permitted;
}

void listen_permits_open(struct listen_permits *permits, struct worker *worker)
{
    *permits = (struct listen_permits){
        .worker = worker, .shared = worker->server->permits >= 0, .permitted = true};
    if (permits->shared)
        listen_permits_take(permits);
}

int listen_permits_descriptor(const struct listen_permits *permits)
{
    return permits->worker->server->permits;
}

/* Returns the fewest persistent connections of a loop without a permit. */
static int64_t fewest_persistent(const struct listen_permits *permits)
{
    const struct server *server = permits->worker->server;
    int64_t fewest = INT64_MAX;

    for (int i = 0; i < server->parts.slot_count; i++) {
        struct scoreboard_slot *slot = &server->board->slots[i];
        int64_t persistent = atomic_load(&slot->persistent);
        if (persistent < fewest && !atomic_load(&slot->listening))
            fewest = persistent;
    }
    return fewest;
}

/* Returns true if the loop has got one more persistent connection, and now has too many. */
static bool is_ahead(struct listen_permits *permits, int64_t persistent)
{
    bool more = persistent > permits->persistent;

    if (persistent != permits->persistent)
        atomic_store(&permits->worker->slot->persistent, persistent);
    permits->persistent = persistent;
    return more && permits->permitted && persistent >= AHEAD_LIMIT &&
           persistent - AHEAD_LIMIT >= fewest_persistent(permits);
}

static int64_t nanoseconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* ---- how long requests block the loop ---- */

/* How often this thread has slept: while it works, a request has blocked it. */
static int64_t count_sleeps(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

void listen_permits_works(struct listen_permits *permits)
{
    int64_t now;

    if (permits->sample != SAMPLE_NEXT && permits->sample != SAMPLE_WAIT)
        return;
    now = nanoseconds(CLOCK_MONOTONIC);
    if (permits->sample == SAMPLE_WAIT) {
        permits->blocked += permits->round_blocked;
        permits->timed += now - permits->round_from;
        permits->sample = SAMPLE_NONE;
        return;
    }
    permits->round_from = now;
    permits->asleep = count_sleeps();
    permits->sample = SAMPLE_WORK;
}

void listen_permits_waits(struct listen_permits *permits)
{
    bool blocked;

    if (permits->sample != SAMPLE_WORK)
        return;
    blocked = count_sleeps() > permits->asleep;
    permits->round_blocked = blocked ? nanoseconds(CLOCK_MONOTONIC) - permits->round_from : 0;
    permits->sample = SAMPLE_WAIT;
}

/* Returns the share of the time in which requests block the loop. Older rounds count less. Begins
 * to time the next round. */
static int64_t blocked_percent(struct listen_permits *permits)
{
    int64_t percent = permits->timed > 0 ? permits->blocked * 100 / permits->timed : 0;

    permits->blocked /= 2;
    permits->timed /= 2;
    if (permits->sample == SAMPLE_NONE)
        permits->sample = SAMPLE_NEXT;
    return percent;
}

/* ---- the load ---- */

/* Returns the share of a processor that this loop has used since the last review; -1 for the first
 * review. */
static int64_t busy_percent(struct listen_permits *permits, int64_t now)
{
    int64_t from = permits->reviewed, before = permits->used;

    permits->used = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    permits->reviewed = now;
    return from == 0 ? -1 : (permits->used - before) / ((now - from) * 10000);
}

/* A permit is counted after it is there, and is given up after it is not counted any more. */
void listen_permits_add(const struct listen_permits *permits)
{
    struct server *server = permits->worker->server;

    if (wakeup_ring(server->permits))
        atomic_fetch_add(&server->board->permits, 1);
}

static void give_up(struct listen_permits *permits, int count)
{
    if (atomic_compare_exchange_strong(&permits->worker->server->board->permits, &count, count - 1))
        set(permits, false);
}

static void pass_on(struct listen_permits *permits)
{
    if (wakeup_ring(permits->worker->server->permits))
        set(permits, false);
}

/* Adds a permit if this loop is too busy, or gives up its own if it is idle and not the last. */
static void review_load(struct listen_permits *permits, int64_t now)
{
    const struct server *server = permits->worker->server;
    int count = atomic_load(&server->board->permits);
    int64_t busy = busy_percent(permits, now), blocked = blocked_percent(permits);

    if (busy >= 0 && blocked > busy)
        busy = blocked;
    if (busy >= BUSY_PERCENT && count < server->parts.slot_count)
        listen_permits_add(permits);
    else if (busy >= 0 && busy < IDLE_PERCENT && count > 1)
        give_up(permits, count);
}

bool listen_permits_review(struct listen_permits *permits, int64_t persistent, int64_t now)
{
    if (!permits->shared)
        return true;
    if (is_ahead(permits, persistent))
        pass_on(permits);
    if (permits->permitted && now - permits->reviewed >= REVIEW_MILLISECONDS)
        review_load(permits, now);
    return permits->permitted;
}

void listen_permits_return(struct server *server, int number)
{
    struct scoreboard_slot *slot = &server->board->slots[number];

    atomic_store(&slot->persistent, 0);
    if (atomic_exchange(&slot->listening, false))
        wakeup_ring(server->permits);
}
