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

static void set(struct duty *duty, bool on)
{
    duty->on = on;
    atomic_store(&duty->worker->post->on_duty, on);
}

static void offer(const struct server *server)
{
    uint64_t one = 1;

    if (write(server->duties, &one, sizeof one) < 0)
        return; /* more than are ever needed are free */
}

/* A worker may die anywhere: then there may be a duty more than are counted, and never one less.
 * How busy it was before it had the duty does not count. */
bool duty_take(struct duty *duty)
{
    uint64_t one;

    duty->reviewed = 0;
    set(duty, true);
    if (read(duty->worker->server->duties, &one, sizeof one) < 0)
        set(duty, false);
    return duty->on;
}

void duty_open(struct duty *duty, struct worker *worker)
{
    *duty = (struct duty){.worker = worker, .shared = worker->server->duties >= 0, .on = true};
    if (duty->shared)
        duty_take(duty);
}

int duty_call(const struct duty *duty)
{
    return duty->worker->server->duties;
}

/* The fewest clients that stay with one that is not on duty. */
static int64_t fewest_stays(const struct duty *duty)
{
    struct scoreboard *board = duty->worker->server->board;
    int64_t fewest = INT64_MAX;

    for (int i = 0; i < board->post_count; i++) {
        struct post *post = &board->posts[i];
        int64_t stays = atomic_load(&post->stays);
        if (stays < fewest && !atomic_load(&post->on_duty))
            fewest = stays;
    }
    return fewest;
}

/* Whether it has more clients that stay than its share. */
static bool is_ahead(struct duty *duty, int64_t stays)
{
    bool more = stays > duty->stays;

    if (stays != duty->stays)
        atomic_store(&duty->worker->post->stays, stays);
    duty->stays = stays;
    return more && duty->on && stays >= STAYS_AHEAD && stays - STAYS_AHEAD >= fewest_stays(duty);
}

/* The share of a processor that this loop has used since the last review; -1 if this is the first
 * one. */
static int64_t busy_percent(struct duty *duty, int64_t now)
{
    int64_t from = duty->reviewed, before = duty->used;
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    duty->used = used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
    duty->reviewed = now;
    return from == 0 ? -1 : (duty->used - before) / ((now - from) * 10000);
}

static bool change_count(struct scoreboard *board, int from, int to)
{
    return atomic_compare_exchange_strong(&board->duties, &from, to);
}

bool duty_review(struct duty *duty, int64_t stays, int64_t now)
{
    struct scoreboard *board = duty->worker->server->board;
    int64_t busy;
    int duties;

    if (!duty->shared)
        return true;
    if (is_ahead(duty, stays)) {
        offer(duty->worker->server);
        set(duty, false);
    }
    if (!duty->on || now - duty->reviewed < REVIEW_MILLISECONDS)
        return duty->on;
    duties = atomic_load(&board->duties);
    busy = busy_percent(duty, now);
    if (busy >= BUSY_PERCENT && duties < board->post_count &&
        change_count(board, duties, duties + 1))
        offer(duty->worker->server);
    else if (busy >= 0 && busy < IDLE_PERCENT && duties > 1 &&
             change_count(board, duties, duties - 1))
        set(duty, false);
    return duty->on;
}

void duty_return(struct server *server, int number)
{
    struct post *post = &server->board->posts[number];

    atomic_store(&post->stays, 0);
    if (atomic_exchange(&post->on_duty, false))
        offer(server);
}
