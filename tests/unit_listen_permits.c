/* Tests of listen_permits.c: a busy loop gets help, an idle one gives its permit up, persistent
 * connections are shared, and at least one loop listens. */
#include "common/workers/listen_permits.h"

#include "tests/unit.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOOPS 3
#define START INT64_C(123456789)

static struct server server;
static struct worker workers[LOOPS];
static struct listen_permits balances[LOOPS];

static void begin(int count)
{
    server = (struct server){.permits = eventfd(1, EFD_NONBLOCK | EFD_SEMAPHORE),
                             .parts = scoreboard_make(count, 0, (struct scoreboard_room){0})};
    server.board = server.parts.board;
    assert_true(server.permits >= 0);
    assert_non_null(server.board);
    atomic_store(&server.board->permits, 1);
    for (int i = 0; i < count; i++) {
        workers[i] =
            (struct worker){.server = &server, .slot = &server.board->slots[i], .number = i};
        listen_permits_open(&balances[i], &workers[i]);
    }
}

static void end(void)
{
    int count = server.parts.slot_count;

    close(server.permits);
    munmap(server.board, sizeof *server.board + (size_t)count * sizeof server.board->slots[0]);
}

/* Keeps a loop busy for a share of the time that passes, and then reviews it. */
static bool pass_time(struct listen_permits *permits, int64_t *now, int percent)
{
    const int64_t work = 20 * INT64_C(1000000); /* nanoseconds of CPU */
    struct timespec time;
    int64_t start;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    start = time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
    permits->reviewed = *now;
    permits->used = start;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    while (time.tv_sec * INT64_C(1000000000) + time.tv_nsec - start < work);
    *now += 20 * 100 / percent;
    return listen_permits_review(permits, permits->persistent, *now);
}

/* Lets requests block a loop for a share of its rounds, and then reviews it. */
static bool pass_rounds(struct listen_permits *permits, int64_t *now, int percent)
{
    const struct timespec blocks = {.tv_nsec = 200000L * percent};
    const struct timespec waits = {.tv_nsec = 200000L * (100 - percent)};

    for (int i = 0; i < 3; i++) {
        listen_permits_works(permits);
        if (percent > 0)
            nanosleep(&blocks, NULL);
        listen_permits_waits(permits);
        nanosleep(&waits, NULL);
    }
    *now += 60;
    return listen_permits_review(permits, permits->persistent, *now);
}

static void check_blocked(void **state)
{
    bool helped = false;
    int64_t now = START;

    (void)state;
    begin(LOOPS);
    pass_rounds(&balances[0], &now, 0); /* begins to time a round */
    pass_rounds(&balances[0], &now, 0);
    assert_false(listen_permits_take(&balances[1])); /* it does not need help */
    for (int i = 0; i < 100 && !helped; i++) { /* a machine with other work may lengthen a wait */
        pass_rounds(&balances[0], &now, 100);
        helped = listen_permits_take(&balances[1]);
    }
    assert_true(helped);
    end();
}

static void check_first(void **state)
{
    (void)state;
    begin(LOOPS);
    assert_true(balances[0].permitted);
    assert_false(balances[1].permitted);
    assert_false(balances[2].permitted);
    assert_false(listen_permits_take(&balances[1]));
    end();
}

static void check_help(void **state)
{
    int64_t now = START;

    (void)state;
    begin(LOOPS);
    assert_true(pass_time(&balances[0], &now, 50));
    assert_false(listen_permits_take(&balances[1])); /* there is no permit */
    assert_true(pass_time(&balances[0], &now, 95));
    assert_true(listen_permits_take(&balances[1]));
    assert_false(listen_permits_take(&balances[2]));
    assert_true(listen_permits_review(&balances[1], 0, now)); /* its earlier load does not count */
    assert_true(pass_time(&balances[1], &now, 95));
    assert_true(listen_permits_take(&balances[2]));
    assert_true(pass_time(&balances[2], &now, 95)); /* no other loop is left */
    assert_int_equal(server.board->permits, LOOPS);
    end();
}

static void check_leave(void **state)
{
    int64_t now = START;

    (void)state;
    begin(LOOPS);
    assert_true(pass_time(&balances[0], &now, 10)); /* the last one keeps its permit */
    assert_true(pass_time(&balances[0], &now, 95));
    assert_true(listen_permits_take(&balances[1]));
    assert_true(pass_time(&balances[1], &now, 50));
    assert_false(pass_time(&balances[1], &now, 10));
    assert_false(listen_permits_take(&balances[2])); /* no permit is left */
    assert_true(pass_time(&balances[0], &now, 10));
    assert_int_equal(server.board->permits, 1);
    end();
}

/* Where no permit can be handed on, the last one stays with its loop. */
static void check_failure(void **state)
{
    int64_t now = START;
    int permits;

    (void)state;
    begin(LOOPS);
    permits = server.permits;
    server.permits = -1;
    assert_true(listen_permits_review(&balances[0], 2, now));
    assert_true(pass_time(&balances[0], &now, 95));
    assert_int_equal(server.board->permits, 1);
    assert_true(pass_time(&balances[0], &now, 10));
    server.permits = permits;
    assert_true(pass_time(&balances[0], &now, 95));
    assert_int_equal(server.board->permits, 2);
    end();
}

static void check_persistent(void **state)
{
    (void)state;
    begin(LOOPS);
    assert_true(listen_permits_review(&balances[0], 1, START));
    assert_false(listen_permits_review(&balances[0], 2, START));
    assert_true(listen_permits_take(&balances[1]));
    assert_true(listen_permits_review(&balances[1], 1, START));
    assert_false(listen_permits_review(&balances[1], 2, START));
    assert_true(listen_permits_take(&balances[2]));
    assert_true(listen_permits_review(&balances[2], 2, START)); /* as many as the others have */
    assert_true(listen_permits_review(&balances[2], 3, START));
    assert_false(listen_permits_review(&balances[2], 4, START));
    assert_true(listen_permits_take(&balances[0]));
    assert_true(listen_permits_review(&balances[0], 2, START)); /* no new connection */
    end();
}

static void check_death(void **state)
{
    (void)state;
    begin(LOOPS);
    listen_permits_return(&server, 1); /* it had no permit */
    assert_false(listen_permits_take(&balances[1]));
    listen_permits_return(&server, 0);
    assert_true(listen_permits_take(&balances[2]));
    assert_false(listen_permits_take(&balances[1]));
    end();
}

static void check_alone(void **state)
{
    int64_t now = START;

    (void)state;
    begin(1);
    assert_true(listen_permits_review(&balances[0], 100, START));
    assert_true(pass_time(&balances[0], &now, 95));
    assert_true(pass_time(&balances[0], &now, 1));
    end();
}

static void check_own(void **state)
{
    (void)state;
    begin(LOOPS);
    close(server.permits);
    server.permits = -1;
    for (int i = 0; i < LOOPS; i++) {
        listen_permits_open(&balances[i], &workers[i]);
        assert_true(listen_permits_review(&balances[i], 100, START));
    }
    end();
}

int main(void)
{
    unit_add("at first one loop listens", check_first, NULL);
    unit_add("a busy loop gets help", check_help, NULL);
    unit_add("a loop that requests block gets help", check_blocked, NULL);
    unit_add("an idle loop gives its permit up, except the last one", check_leave, NULL);
    unit_add("a permit that cannot be handed on stays", check_failure, NULL);
    unit_add("persistent connections are shared", check_persistent, NULL);
    unit_add("the permit of a dead worker goes to another", check_death, NULL);
    unit_add("a single loop always listens", check_alone, NULL);
    unit_add("with a permit for each loop, all loops listen", check_own, NULL);
    return unit_run("listen_permits");
}
