/* The time now, by the wall clock and by the monotonic clock. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

/* One moment by both clocks: seconds since 1970 for dates, milliseconds for deadlines. */
struct moment {
    int64_t seconds;
    int64_t milliseconds;
};

struct moment clock_now(void);

#endif
