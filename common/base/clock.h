/* The current time, by the wall clock and by the monotonic clock. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

/* One moment by both clocks. */
struct moment {
    int64_t seconds;      /* since 1970, for dates */
    int64_t milliseconds; /* monotonic, for deadlines */
};

struct moment clock_now(void);

/* Returns the shorter of two times; -1: without end. */
static inline int clock_shorter(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Returns how long it is until the deadline; 0 if it has passed. */
static inline int clock_until(int64_t deadline, int64_t now)
{
    return deadline > now ? (int)(deadline - now) : 0;
}

#endif
