/* The times at which requests arrive that do not wait for each other: even, or a Poisson process.
 *
 * The same seed gives the same times. */
#ifndef COLLECT_ARRIVALS_H
#define COLLECT_ARRIVALS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct arrivals {
    uint64_t state;
    double gap; /* the mean distance, in nanoseconds */
    bool poisson;
    double next;                 /* in nanoseconds since the start */
    double surge_gap, surge_end; /* the mean distance in a surge, and its end */
};

/* Returns a random number (SplitMix64). */
static inline uint64_t arrivals_random(struct arrivals *arrivals)
{
    uint64_t number = arrivals->state += 0x9e3779b97f4a7c15;

    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    return number ^ (number >> 31);
}

/* Returns a random distance from an exponential distribution. The random number that the logarithm
 * is taken of is above 0 and at most 1. */
static inline double arrivals_gap(struct arrivals *arrivals)
{
    double gap = arrivals->next < arrivals->surge_end ? arrivals->surge_gap : arrivals->gap;

    if (!arrivals->poisson)
        return gap;
    return -log(((double)(arrivals_random(arrivals) >> 11) + 1) / 9007199254740992.0) * gap;
}

/* Begins with so many arrivals a second. The first even arrival comes at once. */
static inline struct arrivals arrivals_begin(double rate, bool poisson, uint64_t seed)
{
    struct arrivals arrivals = {.state = seed, .gap = 1e9 / rate, .poisson = poisson};

    arrivals.next = poisson ? arrivals_gap(&arrivals) : 0;
    return arrivals;
}

/* Begins with a surge: for so many seconds there are so many times as many arrivals. */
static inline void arrivals_surge(struct arrivals *arrivals, double times, double seconds)
{
    arrivals->surge_gap = arrivals->gap / times;
    arrivals->surge_end = seconds * 1e9;
}

/* Goes on to the next arrival. */
static inline void arrivals_step(struct arrivals *arrivals)
{
    arrivals->next += arrivals_gap(arrivals);
}

#endif
