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

#endif
