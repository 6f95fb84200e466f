/* A histogram of times up to 60 s: a bucket is 1 us wide, or at most a thousandth of its times.
 *
 * Histograms add: the counts of two runs, bucket by bucket, are those of both together. Below
 * 2,048 us each bucket is a microsecond; above, each doubling of the time has 1,024 buckets. */
#ifndef COLLECT_HISTOGRAM_H
#define COLLECT_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

enum {
    HISTOGRAM_HALF = 1024,
    HISTOGRAM_MOST = 60000000, /* longer times count as this one */
    HISTOGRAM_BUCKETS = 16 * HISTOGRAM_HALF + HISTOGRAM_HALF
};

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
};

/* Returns the bucket of a time in microseconds. */
static inline int histogram_bucket(int64_t time)
{
    uint64_t value = time < 0 ? 0 : time > HISTOGRAM_MOST ? HISTOGRAM_MOST : (uint64_t)time;
    int shift = 0;

    while (value >> shift >= 2 * HISTOGRAM_HALF)
        shift++;
    return shift * HISTOGRAM_HALF + (int)(value >> shift);
}

/* Returns the lowest time of a bucket. */
static inline int64_t histogram_edge(int bucket)
{
    int shift = bucket < 2 * HISTOGRAM_HALF ? 0 : bucket / HISTOGRAM_HALF - 1;

    return (int64_t)(bucket - shift * HISTOGRAM_HALF) << shift;
}

static inline void histogram_note(struct histogram *histogram, int64_t time)
{
    histogram->counts[histogram_bucket(time)]++;
    histogram->count++;
}

/* Returns the time, in the middle of its bucket, that this share of the times does not exceed. */
static inline double histogram_quantile(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t below = 0;
    int last = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i] == 0)
            continue;
        last = i;
        below += histogram->counts[i];
        if ((double)below >= wanted)
            break;
    }
    return (double)(histogram_edge(last) + histogram_edge(last + 1)) / 2;
}

/* Prints the buckets that are not empty, as `i:count i:count`. */
static inline void histogram_print(const struct histogram *histogram)
{
    const char *separator = "";

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i] == 0)
            continue;
        printf("%s%d:%llu", separator, i, (unsigned long long)histogram->counts[i]);
        separator = " ";
    }
}

#endif
