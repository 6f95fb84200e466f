/* Reads the wall clock and the monotonic clock. */
#include "common/base/clock.h"

#include <time.h>

struct moment clock_now(void)
{
    struct timespec wall, monotonic;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    return (struct moment){wall.tv_sec, monotonic.tv_sec * 1000 + monotonic.tv_nsec / 1000000};
}
