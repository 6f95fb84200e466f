/* Tests of histogram.h: buckets without gaps, at most a thousandth wide; quantiles; sums. */
#include "collect/clients/histogram.h"

#include "tests/unit.h"

#include <stdlib.h>
#include <string.h>

static struct histogram one, two, both;

static void check_buckets(void **state)
{
    int last = histogram_bucket(HISTOGRAM_MOST);

    (void)state;
    assert_true(last + 1 < HISTOGRAM_BUCKETS);
    assert_int_equal(histogram_edge(0), 0);
    for (int i = 0; i <= last; i++) {
        int64_t edge = histogram_edge(i), next = histogram_edge(i + 1);
        assert_true(next > edge);
        assert_int_equal(histogram_bucket(edge), i);
        assert_int_equal(histogram_bucket(next - 1), i);
        assert_true(next - edge == 1 || (next - edge) * 1000 <= edge);
    }
}

static void check_bounds(void **state)
{
    (void)state;
    assert_int_equal(histogram_bucket(-5), 0);
    assert_int_equal(histogram_bucket(INT64_MAX), histogram_bucket(HISTOGRAM_MOST));
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Quantiles differ from those of the sorted times by a thousandth at most. */
static void check_quantiles(void **state)
{
    enum { COUNT = 10000 };
    static const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    int64_t *times = calloc(COUNT, sizeof *times);
    uint64_t random = 1;

    (void)state;
    memset(&one, 0, sizeof one);
    for (int i = 0; i < COUNT; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        times[i] = (int64_t)(random >> 33) % (i % 3 == 0 ? 50000000 : 3000);
        histogram_note(&one, times[i]);
    }
    qsort(times, COUNT, sizeof *times, ascending);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        int at = (int)(shares[i] * COUNT + 0.999999) - 1;
        double exact = (double)times[at < 0 ? 0 : at];
        double found = histogram_quantile(&one, shares[i]);
        assert_true(found >= exact * 0.999 - 1 && found <= exact * 1.001 + 1);
    }
    free(times);
}

static void check_sum(void **state)
{
    (void)state;
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    memset(&both, 0, sizeof both);
    for (int64_t time = 1; time < 60000000; time = time * 3 / 2 + 1) {
        histogram_note(time % 2 ? &one : &two, time);
        histogram_note(&both, time);
    }
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        assert_int_equal(one.counts[i] + two.counts[i], both.counts[i]);
    assert_int_equal(one.count + two.count, both.count);
    assert_true(both.count > 40);
}

static void check_empty(void **state)
{
    (void)state;
    memset(&one, 0, sizeof one);
    assert_true(histogram_quantile(&one, 0.5) <= 1);
}

int main(void)
{
    unit_add("buckets have no gap, and each is a thousandth wide or 1 us", check_buckets, NULL);
    unit_add("times outside the range count in the first and the last bucket", check_bounds, NULL);
    unit_add("quantiles are right to a thousandth", check_quantiles, NULL);
    unit_add("histograms add bucket by bucket", check_sum, NULL);
    unit_add("without a time a quantile is 0", check_empty, NULL);
    return unit_run("histogram");
}
