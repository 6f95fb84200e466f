/* Hands permits to listen to event loops, by their load and their connections. */
#include "common/workers/listen_permits.h"

#include "common/base/wakeup.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* How often the load of a loop is measured. */
#define REVIEW_MILLISECONDS 10
/* A loop that uses more than this share of a processor, or that requests block for more than this
 * share of the time, wants help; one that is below the other share gives its permit up. Two loops
 * that share what was too much for one are above it. */
#define BUSY_PERCENT 70
#define IDLE_PERCENT 30
/* Persistent connections cannot move to another loop. So a loop passes its permit on when it has
 * this many more of them than another loop. */
#define AHEAD_LIMIT 2

static void set(struct listen_permits *balance, bool permitted)
{
    balance->permitted = permitted;
    atomic_store(&balance->worker->slot->listening, permitted);
}

/* A worker may die at any point: then there may be one permit more than are counted, but never
 * fewer. How busy the loop was before it took the permit does not count. */
bool listen_permits_take(struct listen_permits *balance)
{
    uint64_t one;

    balance->reviewed = 0;
    set(balance, true);
    if (read(balance->worker->server->permits, &one, sizeof one) < 0)
        set(balance, false);
    return balance->permitted;
}

void listen_permits_open(struct listen_permits *balance, struct worker *worker)
{
    *balance = (struct listen_permits){
        .worker = worker, .shared = worker->server->permits >= 0, .permitted = true};
    if (balance->shared)
        listen_permits_take(balance);
}

int listen_permits_descriptor(const struct listen_permits *balance)
{
    return balance->worker->server->permits;
}

/* Returns the fewest persistent connections of a loop without a permit. */
static int64_t fewest_persistent(const struct listen_permits *balance)
{
    const struct server *server = balance->worker->server;
    int64_t fewest = INT64_MAX;

    for (int i = 0; i < server->parts.slot_count; i++) {
        struct scoreboard_slot *slot = &server->board->slots[i];
        int64_t persistent = atomic_load(&slot->persistent);
        if (persistent < fewest && !atomic_load(&slot->listening))
            fewest = persistent;
    }
    return fewest;
}

/* Returns true if the loop has got a persistent connection more, and now has too many. */
static bool is_ahead(struct listen_permits *balance, int64_t persistent)
{
    bool more = persistent > balance->persistent;

    if (persistent != balance->persistent)
        atomic_store(&balance->worker->slot->persistent, persistent);
    balance->persistent = persistent;
    return more && balance->permitted && persistent >= AHEAD_LIMIT &&
           persistent - AHEAD_LIMIT >= fewest_persistent(balance);
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

void listen_permits_works(struct listen_permits *balance)
{
    int64_t now;

    if (balance->sample != SAMPLE_NEXT && balance->sample != SAMPLE_WAIT)
        return;
    now = nanoseconds(CLOCK_MONOTONIC);
    if (balance->sample == SAMPLE_WAIT) {
        balance->blocked += balance->round_blocked;
        balance->timed += now - balance->round_from;
        balance->sample = SAMPLE_NONE;
        return;
    }
    balance->round_from = now;
    balance->asleep = count_sleeps();
    balance->sample = SAMPLE_WORK;
}

void listen_permits_waits(struct listen_permits *balance)
{
    bool blocked;

    if (balance->sample != SAMPLE_WORK)
        return;
    blocked = count_sleeps() > balance->asleep;
    balance->round_blocked = blocked ? nanoseconds(CLOCK_MONOTONIC) - balance->round_from : 0;
    balance->sample = SAMPLE_WAIT;
}

/* Returns the share of the time in which requests block the loop. Older rounds count less. Begins
 * to time the next round. */
static int64_t blocked_percent(struct listen_permits *balance)
{
    int64_t percent = balance->timed > 0 ? balance->blocked * 100 / balance->timed : 0;

    balance->blocked /= 2;
    balance->timed /= 2;
    if (balance->sample == SAMPLE_NONE)
        balance->sample = SAMPLE_NEXT;
    return percent;
}

/* ---- the load ---- */

/* Returns the share of a processor that this loop has used since the last review; -1 for the first
 * review. */
static int64_t busy_percent(struct listen_permits *balance, int64_t now)
{
    int64_t from = balance->reviewed, before = balance->used;

    balance->used = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    balance->reviewed = now;
    return from == 0 ? -1 : (balance->used - before) / ((now - from) * 10000);
}

/* A permit is counted after it is there, and is given up after it is not counted any more. */
static void add_permit(struct server *server)
{
    if (wakeup_ring(server->permits))
        atomic_fetch_add(&server->board->permits, 1);
}

static void give_up(struct listen_permits *balance, int permits)
{
    if (atomic_compare_exchange_strong(&balance->worker->server->board->permits, &permits,
                                       permits - 1))
        set(balance, false);
}

static void pass_on(struct listen_permits *balance)
{
    if (wakeup_ring(balance->worker->server->permits))
        set(balance, false);
}

/* Adds a permit if this loop is too busy, or gives up its own if it is idle and not the last. */
static void review_load(struct listen_permits *balance, int64_t now)
{
    const struct server *server = balance->worker->server;
    int permits = atomic_load(&server->board->permits);
    int64_t busy = busy_percent(balance, now), blocked = blocked_percent(balance);

    if (busy >= 0 && blocked > busy)
        busy = blocked;
    if (busy >= BUSY_PERCENT && permits < server->parts.slot_count)
        add_permit(balance->worker->server);
    else if (busy >= 0 && busy < IDLE_PERCENT && permits > 1)
        give_up(balance, permits);
}

bool listen_permits_review(struct listen_permits *balance, int64_t persistent, int64_t now)
{
    if (!balance->shared)
        return true;
    if (is_ahead(balance, persistent))
        pass_on(balance);
    if (balance->permitted && now - balance->reviewed >= REVIEW_MILLISECONDS)
        review_load(balance, now);
    return balance->permitted;
}

void listen_permits_return(struct server *server, int number)
{
    struct scoreboard_slot *slot = &server->board->slots[number];

    atomic_store(&slot->persistent, 0);
    if (atomic_exchange(&slot->listening, false))
        wakeup_ring(server->permits);
}
