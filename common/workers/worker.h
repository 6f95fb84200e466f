/* What one of a crew does: it takes connections, and reports the end of each. */
#ifndef COMMON_WORKERS_WORKER_H
#define COMMON_WORKERS_WORKER_H

#include "common/server.h"

struct worker {
    struct server *server;
    struct listener *listener;
    struct scoreboard_slot *slot;
    int number; /* from 0 */
    int events; /* epoll: of the listener's sockets; or -1, until it has waited for them */
};

/* A worker of the crew; at its end, what it has opened is closed. */
struct worker worker_begin(struct server *server, int number);
void worker_end(struct worker *worker);

/* The next connection for a worker; -1 when it is to end. */
int worker_accept(struct worker *worker);

/* Counts a connection that the worker got in another way: server_accept() took it. */
void worker_take(struct worker *worker);

/* Serves a connection to its end, closes it, and reports that. */
void worker_serve(struct worker *worker, int socket);

/* For a worker that serves many connections at once: the next one, if there is one now and a place
 * for it; otherwise -1 with errno: EAGAIN, EBUSY, or what was warned of. */
int worker_try(struct worker *worker);
/* Whether there is a place for a connection. */
bool worker_has_place(const struct worker *worker);
/* At a stop: for how many milliseconds without a client to wait for the last of them; */
int worker_quiet(const struct worker *worker);
/* and whether the time for those that are being served is over. */
bool worker_is_over(const struct worker *worker);

/* A connection of the worker has ended. */
void worker_left(struct worker *worker);

#endif
