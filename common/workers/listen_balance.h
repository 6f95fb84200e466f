/* Which event loops listen: as few as the load needs. A loop that is woken on another processor
 * costs more than a small request that one that is awake serves on the way. Whoever has a duty
 * listens; the others are called when there is too much for those that do. Duties are shared by all
 * workers of the server: there is always one, and never more than workers. */
#ifndef COMMON_WORKERS_LISTEN_BALANCE_H
#define COMMON_WORKERS_LISTEN_BALANCE_H

#include "common/workers/worker.h"

struct listen_balance {
    struct worker *worker;
    bool shared;        /* there are fewer duties than loops; otherwise each has one for good */
    bool on;            /* this loop has one */
    int64_t persistent; /* its clients that keep their connections, as its post tells the others */
    int64_t reviewed;   /* when, in milliseconds */
    int64_t used;       /* CPU time until then, in nanoseconds */
};

/* Takes a duty if one is free. */
void listen_balance_open(struct listen_balance *balance, struct worker *worker);

/* Readable while a duty is free; -1 where each loop has one. */
int listen_balance_call(const struct listen_balance *balance);
/* Takes one that is free; false if another loop was faster. */
bool listen_balance_take(struct listen_balance *balance);

/* To be called after each turn of a loop that has `persistent` clients that keep their connections:
 * others are called for help, or take over. Returns whether the loop still has its duty. */
bool listen_balance_review(struct listen_balance *balance, int64_t persistent, int64_t now);

/* The worker has died: what it had, others can take. */
void listen_balance_return(struct server *server, int number);

#endif
