/* The duties of event loops: who has too much to do is helped, who has little leaves it to others,
 * clients that stay are shared, and there is never no loop that listens. */
#include "common/workers/listen_balance.h"

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
static struct listen_balance duties[LOOPS];

static void begin(int count)
{
    server = (struct server){.permits = eventfd(1, EFD_NONBLOCK | EFD_SEMAPHORE),
                             .board = scoreboard_make(count)};
    assert_true(server.permits >= 0);
    assert_non_null(server.board);
    atomic_store(&server.board->permits, 1);
    for (int i = 0; i < count; i++) {
        workers[i] =
            (struct worker){.server = &server, .slot = &server.board->slots[i], .number = i};
        listen_balance_open(&duties[i], &workers[i]);
    }
}

static void end(void)
{
    int count = server.board->slot_count;

    close(server.permits);
    munmap(server.board, sizeof *server.board + (size_t)count * sizeof server.board->slots[0]);
}

/* Has a loop be busy for a share of the time that passes, and review its duty then. */
static bool pass_time(struct listen_balance *balance, int64_t *now, int percent)
{
    const int64_t work = 20 * INT64_C(1000000); /* nanoseconds of CPU */
    struct timespec time;
    int64_t start;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    start = time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
    balance->reviewed = *now;
    balance->used = start;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    while (time.tv_sec * INT64_C(1000000000) + time.tv_nsec - start < work);
    *now += 20 * 100 / percent;
    return listen_balance_review(balance, balance->persistent, *now);
}

static void check_first(void **state)
{
    (void)state;
    begin(LOOPS);
    assert_true(duties[0].on);
    assert_false(duties[1].on);
    assert_false(duties[2].on);
    assert_false(listen_balance_take(&duties[1]));
    end();
}

static void check_help(void **state)
{
    int64_t now = START;

    (void)state;
    begin(LOOPS);
    assert_true(pass_time(&duties[0], &now, 50));
    assert_false(listen_balance_take(&duties[1])); /* nobody was called */
    assert_true(pass_time(&duties[0], &now, 95));
    assert_true(listen_balance_take(&duties[1]));
    assert_false(listen_balance_take(&duties[2]));
    assert_true(listen_balance_review(&duties[1], 0, now)); /* what it did before does not count */
    assert_true(pass_time(&duties[1], &now, 95));
    assert_true(listen_balance_take(&duties[2]));
    assert_true(pass_time(&duties[2], &now, 95)); /* there is nobody left to call */
    assert_int_equal(server.board->permits, LOOPS);
    end();
}

static void check_leave(void **state)
{
    int64_t now = START;

    (void)state;
    begin(LOOPS);
    assert_true(pass_time(&duties[0], &now, 10)); /* the last one persistent */
    assert_true(pass_time(&duties[0], &now, 95));
    assert_true(listen_balance_take(&duties[1]));
    assert_true(pass_time(&duties[1], &now, 50));
    assert_false(pass_time(&duties[1], &now, 10));
    assert_false(listen_balance_take(&duties[2])); /* it was not passed on */
    assert_true(pass_time(&duties[0], &now, 10));
    assert_int_equal(server.board->permits, 1);
    end();
}

static void check_stays(void **state)
{
    (void)state;
    begin(LOOPS);
    assert_true(listen_balance_review(&duties[0], 1, START));
    assert_false(listen_balance_review(&duties[0], 2, START));
    assert_true(listen_balance_take(&duties[1]));
    assert_true(listen_balance_review(&duties[1], 1, START));
    assert_false(listen_balance_review(&duties[1], 2, START));
    assert_true(listen_balance_take(&duties[2]));
    assert_true(listen_balance_review(&duties[2], 2, START)); /* no more than the others have */
    assert_true(listen_balance_review(&duties[2], 3, START));
    assert_false(listen_balance_review(&duties[2], 4, START));
    assert_true(listen_balance_take(&duties[0]));
    assert_true(listen_balance_review(&duties[0], 2, START)); /* what it had is nothing new */
    end();
}

static void check_death(void **state)
{
    (void)state;
    begin(LOOPS);
    listen_balance_return(&server, 1); /* it had none */
    assert_false(listen_balance_take(&duties[1]));
    listen_balance_return(&server, 0);
    assert_true(listen_balance_take(&duties[2]));
    assert_false(listen_balance_take(&duties[1]));
    end();
}

static void check_alone(void **state)
{
    int64_t now = START;

    (void)state;
    begin(1);
    assert_true(listen_balance_review(&duties[0], 100, START));
    assert_true(pass_time(&duties[0], &now, 95));
    assert_true(pass_time(&duties[0], &now, 1));
    end();
}

static void check_own(void **state)
{
    (void)state;
    begin(LOOPS);
    close(server.permits);
    server.permits = -1;
    for (int i = 0; i < LOOPS; i++) {
        listen_balance_open(&duties[i], &workers[i]);
        assert_true(listen_balance_review(&duties[i], 100, START));
    }
    end();
}

int main(void)
{
    unit_add("one loop begins", check_first, NULL);
    unit_add("who is busy calls for help, while there is somebody", check_help, NULL);
    unit_add("who has little to do leaves, but for the last one", check_leave, NULL);
    unit_add("clients that stay are shared", check_stays, NULL);
    unit_add("what the dead had goes to others", check_death, NULL);
    unit_add("a loop alone", check_alone, NULL);
    unit_add("a duty for each", check_own, NULL);
    return unit_run("duty");
}
