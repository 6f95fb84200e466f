/* A clock that is cheap even in a process that lives for one request. */
#ifndef COMMON_BASE_TICKS_H
#define COMMON_BASE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

/* One moment by both clocks. */
struct ticks {
    bool direct; /* ticks are read from the processor; else they are nanoseconds */
    uint64_t ticks;
    uint64_t nanoseconds; /* of CLOCK_MONOTONIC */
};

struct ticks ticks_start(void);
/* Returns the ticks of now, to be compared with those of the start. */
uint64_t ticks_now(const struct ticks *start);
/* Returns the nanoseconds per tick, from how far both clocks have advanced since the start. */
double ticks_nanoseconds(const struct ticks *start);

#endif
