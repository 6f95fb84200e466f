/* Tests of arrivals.h: the distances of arrivals, and that a seed gives the same ones again. */
#include "collect/clients/arrivals.h"

#include "tests/unit.h"

#define COUNT 200000

/* Returns the mean distance in nanoseconds, and the coefficient of variation. */
static double mean_of(struct arrivals arrivals, double *variation)
{
    double sum = 0, squares = 0, mean;

    for (int i = 0; i < COUNT; i++) {
        double before = arrivals.next, gap;
        arrivals_step(&arrivals);
        gap = arrivals.next - before;
        assert_true(gap >= 0);
        sum += gap;
        squares += gap * gap;
    }
    mean = sum / COUNT;
    *variation = sqrt(squares / COUNT - mean * mean > 0 ? squares / COUNT - mean * mean : 0) / mean;
    return mean;
}

static void check_even(void **state)
{
    double variation;

    (void)state;
    assert_float_equal(mean_of(arrivals_begin(2000, false, 1), &variation), 500000, 0.01);
    assert_true(variation < 1e-3);
}

/* The distances of a Poisson process are exponential: their deviation is their mean. The bounds are
 * five standard errors wide. */
static void check_poisson(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        double variation;
        assert_float_equal(mean_of(arrivals_begin(2000, true, seed), &variation) / 500000, 1,
                           0.012);
        assert_float_equal(variation, 1, 0.016);
    }
}

/* Three times as many arrivals come in the first half second, then as many as without a surge. */
static void check_surge(void **state)
{
    struct arrivals arrivals = arrivals_begin(1000, false, 1);
    int in_surge = 0, after = 0;

    (void)state;
    arrivals_surge(&arrivals, 3, 0.5);
    for (; arrivals.next < 1e9; arrivals_step(&arrivals))
        *(arrivals.next < 0.5e9 ? &in_surge : &after) += 1;
    assert_in_range(in_surge, 1499, 1501);
    assert_in_range(after, 499, 501);
}

/* The share of exponential distances above their mean is 1/e. */
static void check_shape(void **state)
{
    struct arrivals arrivals = arrivals_begin(1000, true, 7);
    double before = 0;
    int longer = 0;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        longer += arrivals.next - before > 1e6;
        before = arrivals.next;
        arrivals_step(&arrivals);
    }
    assert_float_equal((double)longer / COUNT, exp(-1), 0.0055);
}

static void check_seeds(void **state)
{
    struct arrivals one = arrivals_begin(100, true, 42), same = one;
    struct arrivals other = arrivals_begin(100, true, 43);

    (void)state;
    assert_true(one.next != other.next);
    for (int i = 0; i < 1000; i++) {
        arrivals_step(&one);
        arrivals_step(&same);
        assert_true(one.next == same.next);
    }
}

int main(void)
{
    unit_add("even arrivals have the same distance", check_even, NULL);
    unit_add("Poisson arrivals have the mean and the deviation that they should", check_poisson,
             NULL);
    unit_add("a surge has so many times as many arrivals, and then it is over", check_surge, NULL);
    unit_add("a share of 1/e of the distances is longer than their mean", check_shape, NULL);
    unit_add("a seed gives the same arrivals again, another one others", check_seeds, NULL);
    return unit_run("arrivals");
}
