#include "common/workers/listen_balance.h"

#include <time.h>
#include <unistd.h>

/* How busy a loop is, is looked at so often. */
#define REVIEW_MILLISECONDS 10
/* From this share of a processor on it wants help; and it leaves the work to others when it has
 * less than this. Two that share what was too much for one are above it. */
#define BUSY_PERCENT 70
#define IDLE_PERCENT 30
/* Clients that stay are work that does not move: nobody takes so many more of them than others. */
#define STAYS_AHEAD 2

static void set(struct listen_balance *balance, bool on)
{
    balance->on = on;
    atomic_store(&balance->worker->slot->listening, on);
}

static void offer(const struct server *server)
{
    uint64_t one = 1;

    if (write(server->permits, &one, sizeof one) < 0)
        return; /* more than are ever needed are free */
}

/* A worker may die anywhere: then there may be a duty more than are counted, and never one less.
 * How busy it was before it had the duty does not count. */
bool listen_balance_take(struct listen_balance *balance)
{
    uint64_t one;

    balance->reviewed = 0;
    set(balance, true);
    if (read(balance->worker->server->permits, &one, sizeof one) < 0)
        set(balance, false);
    return balance->on;
}

void listen_balance_open(struct listen_balance *balance, struct worker *worker)
{
    *balance = (struct listen_balance){
        .worker = worker, .shared = worker->server->permits >= 0, .on = true};
    if (balance->shared)
        listen_balance_take(balance);
}

int listen_balance_call(const struct listen_balance *balance)
{
    return balance->worker->server->permits;
}

/* The fewest clients that stay with one that is not on duty. */
static int64_t fewest_stays(const struct listen_balance *balance)
{
    struct scoreboard *board = balance->worker->server->board;
    int64_t fewest = INT64_MAX;

    for (int i = 0; i < board->slot_count; i++) {
        struct scoreboard_slot *post = &board->slots[i];
        int64_t persistent = atomic_load(&post->persistent);
        if (persistent < fewest && !atomic_load(&post->listening))
            fewest = persistent;
    }
    return fewest;
}

/* Whether it has more clients that stay than its share. */
static bool is_ahead(struct listen_balance *balance, int64_t persistent)
{
    bool more = persistent > balance->persistent;

    if (persistent != balance->persistent)
        atomic_store(&balance->worker->slot->persistent, persistent);
    balance->persistent = persistent;
    return more && balance->on && persistent >= STAYS_AHEAD &&
           persistent - STAYS_AHEAD >= fewest_stays(balance);
}

/* The share of a processor that this loop has used since the last review; -1 if this is the first
 * one. */
static int64_t busy_percent(struct listen_balance *balance, int64_t now)
{
    int64_t from = balance->reviewed, before = balance->used;
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    balance->used = used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
    balance->reviewed = now;
    return from == 0 ? -1 : (balance->used - before) / ((now - from) * 10000);
}

static bool change_count(struct scoreboard *board, int from, int to)
{
    return atomic_compare_exchange_strong(&board->permits, &from, to);
}

bool listen_balance_review(struct listen_balance *balance, int64_t persistent, int64_t now)
{
    struct scoreboard *board = balance->worker->server->board;
    int64_t busy;
    int duties;

    if (!balance->shared)
        return true;
    if (is_ahead(balance, persistent)) {
        offer(balance->worker->server);
        set(balance, false);
    }
    if (!balance->on || now - balance->reviewed < REVIEW_MILLISECONDS)
        return balance->on;
    duties = atomic_load(&board->permits);
    busy = busy_percent(balance, now);
    if (busy >= BUSY_PERCENT && duties < board->slot_count &&
        change_count(board, duties, duties + 1))
        offer(balance->worker->server);
    else if (busy >= 0 && busy < IDLE_PERCENT && duties > 1 &&
             change_count(board, duties, duties - 1))
        set(balance, false);
    return balance->on;
}

void listen_balance_return(struct server *server, int number)
{
    struct scoreboard_slot *post = &server->board->slots[number];

    atomic_store(&post->persistent, 0);
    if (atomic_exchange(&post->listening, false))
        offer(server);
}
