/* The deadlines of many connections, in a timer wheel: each slot holds those of a short span of
 * time. Setting a deadline, and finding one that has passed, take constant time. */
#ifndef COMMON_WORKERS_TIMERS_H
#define COMMON_WORKERS_TIMERS_H

#include <stddef.h>
#include <stdint.h>

#define TIMERS_SLOTS 512

struct timer {
    struct timer *next;
    struct timer **link; /* the pointer to this one; NULL: it is not set */
    int64_t deadline;    /* in milliseconds */
    int64_t span;        /* the one at whose end it is checked */
};

struct timers {
    int64_t span; /* the current one */
    uint64_t filled[TIMERS_SLOTS / 64];
    struct timer *slots[TIMERS_SLOTS];
};

void timers_open(struct timers *timers, int64_t now);
/* Postponing a deadline costs almost nothing. */
void timers_set(struct timers *timers, struct timer *timer, int64_t deadline);
void timers_stop(struct timers *timers, struct timer *timer);
/* Returns a timer whose deadline has passed, stopped; NULL if there is none. It may be late by
 * TIMERS_SPAN milliseconds. */
#define TIMERS_SPAN 32
struct timer *timers_take(struct timers *timers, int64_t now);
/* Returns for how many milliseconds timers_take() will return NULL; -1: for ever. */
int timers_wait(const struct timers *timers, int64_t now);
/* Lists all timers, at most `room` of them. Returns their number. */
size_t timers_list(const struct timers *timers, struct timer **list, size_t room);
/* Returns any timer, stopped; NULL if there is none. */
struct timer *timers_any(struct timers *timers);

#endif
