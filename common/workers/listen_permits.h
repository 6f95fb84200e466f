/* Decides which event loops listen: as few as the load needs. Waking a loop on another processor
 * costs more than a small request costs a loop that is awake. A loop listens while it has a permit.
 * The loops of a server share the permits: there is always one. Loops that add one at the same
 * moment may make more than there are loops: those that are idle give theirs up. */
#ifndef COMMON_WORKERS_LISTEN_PERMITS_H
#define COMMON_WORKERS_LISTEN_PERMITS_H

#include "common/workers/worker.h"

/* Some rounds of a loop are timed, to find out how long its requests block it. */
enum sample {
    SAMPLE_NONE,
    SAMPLE_NEXT, /* the round that begins next */
    SAMPLE_WORK, /* the loop works */
    SAMPLE_WAIT, /* it waits */
};

struct listen_permits {
    struct worker *worker;
    bool shared;        /* loops share permits; false: each loop has one for good */
    bool permitted;     /* this loop has a permit */
    int64_t persistent; /* its persistent connections, as its slot tells the other loops */
    int64_t reviewed;   /* when the load was measured, in milliseconds */
    int64_t used;       /* CPU time until then, in nanoseconds */
    enum sample sample;
    int64_t round_from;     /* when the timed round began, in nanoseconds */
    int64_t asleep;         /* how often the loop had been asleep then */
    int64_t blocked, timed; /* nanoseconds: of `timed`, requests blocked the loop for `blocked` */
    int64_t round_blocked;  /* the same of that round */
};

/* Takes a permit if one is free. */
void listen_permits_open(struct listen_permits *permits, struct worker *worker);

/* A descriptor that is readable while a permit is free; -1 where each loop has one. */
int listen_permits_descriptor(const struct listen_permits *permits);
/* Takes a free permit; false if another loop was faster. */
bool listen_permits_take(struct listen_permits *permits);

/* Makes a permit that is free. Where there are more than needed, an idle loop gives its own up. */
void listen_permits_add(const struct listen_permits *permits);

/* Called before and after each wait of a loop. */
void listen_permits_waits(struct listen_permits *permits);
void listen_permits_works(struct listen_permits *permits);

/* Called after each round of a loop, with its number of persistent connections: it may give its
 * permit up, pass it on, or add one for another loop. Returns true if the loop still has a permit.
 */
bool listen_permits_review(struct listen_permits *permits, int64_t persistent, int64_t now);

/* The worker has died: frees its permit. */
void listen_permits_return(struct server *server, int number);

#endif
