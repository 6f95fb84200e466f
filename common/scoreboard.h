/* The counters of a server: in memory that all its processes and threads share. */
#ifndef COMMON_SCOREBOARD_H
#define COMMON_SCOREBOARD_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What one worker of a crew has done; without a crew, what all have. Each has cache lines of its
 * own. */
struct post {
    alignas(64) _Atomic uint64_t connections; /* accepted */
    _Atomic uint64_t requests;
    _Atomic uint64_t errors;  /* replies of 400 and above, and replies cut short */
    _Atomic uint64_t bytes;   /* sent */
    _Atomic uint64_t dropped; /* datagrams without a reply */
    _Atomic int64_t active;   /* connections now, of a worker */
    _Atomic int64_t stays;    /* of them, that keep their connections; of an event loop */
    _Atomic bool listening;   /* an event loop listens; see duty.h */
    _Atomic bool given;       /* a connection was passed to it that it has not served to its end */
};

struct scoreboard {
    _Atomic int64_t active;  /* connections now */
    _Atomic uint64_t peak;   /* most at once */
    _Atomic uint64_t made;   /* processes or threads */
    _Atomic int64_t workers; /* of a crew, that have not ended */
    /* When all must have ended, by the monotonic clock in milliseconds; 0 until a stop was asked
     * for. */
    _Atomic int64_t stop_deadline;
    _Atomic bool acceptor_waits;    /* for a connection to end */
    _Atomic bool hurry;             /* at a stop there is no use in waiting for late clients */
    _Atomic bool drained;           /* at a stop no client has come for long enough */
    _Atomic int64_t scarce_seconds; /* in which warnings are counted */
    _Atomic int scarce_warnings;
    _Atomic int duties; /* of event loops that listen */
    int post_count;
    struct post posts[];
};

/* What a connection has yet to add. */
struct tally {
    uint64_t requests;
    uint64_t errors;
    uint64_t bytes;
    uint64_t dropped;
};

/* NULL, with errno set, if there is no memory. */
struct scoreboard *scoreboard_make(int posts);
void scoreboard_add(struct post *post, struct tally *tally);

/* The sum of all posts. */
struct total {
    uint64_t connections;
    uint64_t requests;
    uint64_t errors;
    uint64_t bytes;
    uint64_t dropped;
};

/* So many connections there are now. */
void scoreboard_note_peak(struct scoreboard *board, int64_t active);

struct total scoreboard_total(const struct scoreboard *board);
bool scoreboard_stopping(const struct scoreboard *board);

#endif
