/* Tests of timers.c: no deadline comes early, none is late by more than a span, and none is lost.
 */
#include "common/workers/timers.h"

#include "tests/unit.h"

#include <stdlib.h>

#define COUNT 500

/* Far from zero, as the monotonic clock is. */
#define START INT64_C(123456789)

static struct timer set[COUNT];
static struct timers timers;

static void begin(int64_t now)
{
    for (int i = 0; i < COUNT; i++)
        set[i] = (struct timer){0};
    timers_open(&timers, now);
}

static void check_empty(void **state)
{
    (void)state;
    begin(START);
    assert_int_equal(timers_wait(&timers, START), -1);
    assert_null(timers_take(&timers, START + 1000000));
    assert_null(timers_any(&timers));
    timers_stop(&timers, &set[0]); /* which was never set */
}

static void check_one(void **state)
{
    static const int64_t delays[] = {0, 1, 31, 32, 1000, 16383, 16384, 16385, 100000, 86400000};

    (void)state;
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        int64_t now = START, deadline = START + delays[i];
        struct timer *found = NULL;

        begin(START);
        timers_set(&timers, &set[0], deadline);
        while (found == NULL) {
            int wait = timers_wait(&timers, now);
            assert_true(wait >= 0);
            assert_true(now <= deadline + TIMERS_SPAN);
            now += wait > 0 ? wait : 1;
            found = timers_take(&timers, now);
        }
        assert_ptr_equal(found, &set[0]);
        assert_true(now >= deadline && now <= deadline + TIMERS_SPAN);
        assert_int_equal(timers_wait(&timers, now), -1);
    }
}

static void check_put_off(void **state)
{
    struct timer *found;

    (void)state;
    begin(START);
    timers_set(&timers, &set[0], START + 100);
    timers_set(&timers, &set[0], START + 5000);
    assert_null(timers_take(&timers, START + 4999));
    found = timers_take(&timers, START + 5000 + TIMERS_SPAN);
    assert_ptr_equal(found, &set[0]);
    timers_set(&timers, &set[0], START + 50000);
    timers_set(&timers, &set[0], START + 6000); /* advanced */
    found = timers_take(&timers, START + 6000 + TIMERS_SPAN);
    assert_ptr_equal(found, &set[0]);
}

static void check_stopped(void **state)
{
    (void)state;
    begin(START);
    for (int i = 0; i < 3; i++)
        timers_set(&timers, &set[i], START + 10);
    timers_stop(&timers, &set[1]);
    timers_stop(&timers, &set[1]);
    assert_ptr_not_equal(timers_take(&timers, START + 1000), &set[1]);
    assert_ptr_not_equal(timers_any(&timers), &set[1]);
    assert_null(timers_take(&timers, START + 100000));
    assert_int_equal(timers_wait(&timers, START), -1);
}

static unsigned draw(unsigned *random, unsigned below)
{
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % below;
}

/* Compares with a plain list of the same deadlines, in which 0 is not set. */
static void check_random(void **state)
{
    int64_t wanted[COUNT] = {0}, now = START;
    unsigned random = 7;

    (void)state;
    begin(START);
    for (int round = 0; round < 100000; round++) {
        unsigned i = draw(&random, COUNT);
        struct timer *found;

        if (draw(&random, 4) == 0) {
            timers_stop(&timers, &set[i]);
            wanted[i] = 0;
        } else {
            wanted[i] = now + draw(&random, draw(&random, 8) == 0 ? 200000 : 3000);
            timers_set(&timers, &set[i], wanted[i]);
        }
        now += draw(&random, 40);
        while ((found = timers_take(&timers, now)) != NULL) {
            assert_true(wanted[found - set] != 0 && wanted[found - set] <= now);
            wanted[found - set] = 0;
        }
        for (int other = 0; round % 100 == 0 && other < COUNT; other++)
            assert_true(wanted[other] == 0 || wanted[other] + TIMERS_SPAN > now);
    }
    for (struct timer *left; (left = timers_any(&timers)) != NULL; wanted[left - set] = 0)
        assert_true(wanted[left - set] != 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(wanted[i], 0);
}

int main(void)
{
    unit_add("an empty wheel has no deadline", check_empty, NULL);
    unit_add("a deadline comes in time, near or far", check_one, NULL);
    unit_add("a deadline can be postponed and advanced", check_put_off, NULL);
    unit_add("a timer that was stopped does not expire", check_stopped, NULL);
    unit_add("100,000 random steps agree with a plain list", check_random, NULL);
    return unit_run("timers");
}
