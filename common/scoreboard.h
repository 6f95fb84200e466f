/* The counters of a server: in memory that all its processes and threads share. */
#ifndef COMMON_SCOREBOARD_H
#define COMMON_SCOREBOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct scoreboard {
    _Atomic uint64_t connections; /* accepted */
    _Atomic int64_t active;       /* now */
    _Atomic uint64_t peak;        /* most at once */
    _Atomic uint64_t requests;
    _Atomic uint64_t errors; /* replies of 400 and above, and replies cut short */
    _Atomic uint64_t bytes;  /* sent */
    _Atomic uint64_t made;   /* processes or threads */
    /* When all must have ended, by the monotonic clock in milliseconds; 0 until a stop was asked
     * for. */
    _Atomic int64_t stop_deadline;
    _Atomic bool acceptor_waits; /* for a connection to end */
};

/* What a connection has yet to add. */
struct tally {
    uint64_t requests;
    uint64_t errors;
    uint64_t bytes;
};

/* NULL, with errno set, if there is no memory. */
struct scoreboard *scoreboard_make(void);
void scoreboard_add(struct scoreboard *board, struct tally *tally);
bool scoreboard_stopping(const struct scoreboard *board);

#endif
