/* The deadlines of many connections. To set one, or to find one that has passed, takes the same
 * time however many there are: a wheel of slots, each for one short span of time. */
#ifndef COMMON_WORKERS_TIMERS_H
#define COMMON_WORKERS_TIMERS_H

#include <stdint.h>

#define TIMERS_SLOTS 512

struct timer {
    struct timer *next;
    struct timer **link; /* what points to this one; NULL: it is not set */
    int64_t deadline;    /* in milliseconds */
    int64_t looked;      /* the span at whose end it is looked at */
};

struct timers {
    int64_t span; /* that is going on */
    uint64_t filled[TIMERS_SLOTS / 64];
    struct timer *slots[TIMERS_SLOTS];
};

void timers_open(struct timers *timers, int64_t now);
/* To put a deadline off costs almost nothing. */
void timers_set(struct timers *timers, struct timer *timer, int64_t deadline);
void timers_stop(struct timers *timers, struct timer *timer);
/* Any one whose deadline has passed, stopped; NULL if there is none. It may be late by
 * TIMERS_SPAN. */
#define TIMERS_SPAN 32
struct timer *timers_take(struct timers *timers, int64_t now);
/* For how many milliseconds there is nothing to take for sure; -1: for ever. */
int timers_wait(const struct timers *timers, int64_t now);
/* Any one, stopped; NULL if there is none. */
struct timer *timers_any(struct timers *timers);

#endif
