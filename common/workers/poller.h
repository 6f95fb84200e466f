/* How an event loop waits: for its clients, and for its other sources of events. Each way of the
 * kernel to wait for many descriptors is a kind of poller. */
#ifndef COMMON_WORKERS_POLLER_H
#define COMMON_WORKERS_POLLER_H

#include "common/connection.h"
#include "common/workers/worker.h"

#include <sys/epoll.h>

/* The descriptors that are awaited for a client. This is the first member of the struct client of
 * the event loop. */
struct watch {
    int socket;
    int other;             /* a descriptor of its service that is awaited; -1: none */
    bool awaits_socket;    /* not the other one */
    enum need need;        /* of the one that it awaits */
    enum need socket_need; /* that the poller waits for at the socket; NEED_NOTHING: it does not */
    enum need other_need;
    void *own; /* what the poller knows of the client */
};

struct poller {
    const struct poller_kind *kind;
    int epoll;
    struct poller_uring *ring;
};

/* The most events that a wait returns: then the loop looks for others. */
#define POLLER_EVENTS 64

/* The sources that are no clients have numbers below this, and an event of nobody has this number.
 * The addresses of clients are higher. */
#define POLLER_NOTHING 63

struct poller_kind {
    /* Opens it for a worker. On failure it prints the reason and returns false. */
    bool (*open)(struct poller *, struct worker *);
    /* All clients have ended. */
    void (*close)(struct poller *);
    /* Begins to wait for a source, for these events of epoll_ctl(2); false if that fails. */
    bool (*add)(struct poller *, int source, int descriptor, uint32_t events);
    /* Waits for it no longer. */
    void (*remove)(struct poller *, int source, int descriptor);
    /* Prepares for a client; it may give the connection another transport. NULL: nothing to do. */
    bool (*begin)(struct poller *, struct watch *, struct connection *);
    /* The connection of the client has been closed. NULL: nothing to do. */
    void (*end)(struct poller *, struct watch *);
    /* Waits for the descriptor that a client awaits; false if that fails. */
    bool (*watch)(struct poller *, struct watch *);
    /* Waits for its other descriptor no longer. */
    void (*unwatch_other)(struct poller *, struct watch *);
    /* Waits so many milliseconds, -1: for ever. Returns the number of events, whose data are the
     * number of a source or the address of a watch. */
    int (*wait)(struct poller *, struct epoll_event events[POLLER_EVENTS], int milliseconds);
};

#endif
