/* A worker: a process or thread that takes connections, one after another or many at once. */
#ifndef COMMON_WORKERS_WORKER_H
#define COMMON_WORKERS_WORKER_H

#include "common/server.h"

struct worker {
    struct server *server;
    struct listener *listener;
    struct scoreboard_slot *slot;
    int number; /* from 0 */
    int seat;   /* of the connection that it took last */
    int events; /* epoll: the listener and the stop; -1: it has not waited for them yet */
    bool idle;  /* it waited for a client in vain */
    bool stops; /* it knows of the stop */
};

struct worker worker_begin(struct server *server, int number);
/* Closes what the worker has opened. */
void worker_end(struct worker *worker);

/* Waits for the next connection of a worker, and returns it; -1 when the worker shall end. */
int worker_accept(struct worker *worker);

/* Counts a connection that server_accept() accepted for the worker, and that has this seat. */
void worker_take(struct worker *worker, int seat);
/* Leaves the seats of a worker that has died. */
void worker_lost_seats(struct server *server, int number);

/* Serves a connection to its end, closes it, and reports its end. */
void worker_serve(struct worker *worker, int socket);

/* For a worker that serves many connections at once: returns the next connection if there is one
 * and a seat for it; else -1 with errno: EAGAIN, EBUSY, or an error that was reported. */
int worker_try(struct worker *worker);
/* Returns true if there is a seat for a connection. */
bool worker_has_seat(const struct worker *worker);
/* At a stop: after how many milliseconds without a client the worker stops listening. */
int worker_quiet(const struct worker *worker);
/* Returns true if new clients are not refused yet: the last one has not come. */
bool worker_may_be_late(const struct worker *worker);
/* Returns true if another server accepts all new clients. */
bool worker_is_relieved(const struct worker *worker);
/* Returns true if the time for connections is over. */
bool worker_is_over(const struct worker *worker);

/* Reports the end of a connection of the worker. */
void worker_left(struct worker *worker);

#endif
