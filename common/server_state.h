/* The state of a running server. */
#ifndef COMMON_SERVER_STATE_H
#define COMMON_SERVER_STATE_H

#include "common/access_log.h"
#include "common/base/clock.h"
#include "common/base/memory_limit.h"
#include "common/base/memory_return.h"
#include "common/model.h"
#include "common/net/listener.h"
#include "common/net/listener_handover.h"
#include "common/options.h"
#include "common/scoreboard.h"
#include "common/seats.h"
#include "common/service.h"
#include "common/services.h"
#include "common/trace.h"

#include <sys/types.h>

/* The server that this one replaces, or that replaces it; see upgrade.h. */
struct upgrade {
    struct listener_handover given; /* by the server before */
    int helper;                     /* see listener_handover.h */
    int channel;                    /* to the server before, until it has said what to do; or -1 */
    unsigned number;                /* of the last new server */
    bool pending;                   /* a new server was started, and is not ready yet */
    bool handed_over;               /* another server accepts all new clients */
    bool stopped;                   /* a stop was requested after that */
    int64_t started;
};

/* Clients that were accepted before they could be served, so that the port was free. */
struct gathered {
    int *sockets;
    int count, next;
    bool closed; /* no further client will come */
};

/* The memory of the accepting process between two clients. Times are in milliseconds. */
struct accepting {
    int events;           /* epoll: all that it waits for */
    unsigned unchecked;   /* connections accepted since signals were checked */
    int64_t checked;      /* when they were */
    int64_t asked;        /* when connections were last asked for their seats */
    bool refusing;        /* a stop was requested: new clients are refused */
    int quiet;            /* how long to wait then for clients on their way */
    int64_t silent_until; /* the kernel may hold silent clients back until then */
    struct gathered gathered;
};

/* The memory of the server's processes, and what many connections do to it. */
struct memory_watch {
    struct memory_gauge gauge;
    int64_t tight_from;  /* so many connections at once may use up the memory; 0: none */
    int64_t tight_until; /* in milliseconds */
    struct memory_return returns;
    void *ballast; /* see ballast.h */
    int oom_guard; /* see oom_guard.h; or -1 */
    int status;    /* see proc_status.h */
};

/* Of --trace. */
struct tracing {
    struct trace trace;
    int file;         /* or -1 */
    char **arguments; /* of the program */
    long processors;
};

/* The accepting process uses all of it. Each child has a copy; they share the scoreboard. In
 * fork_server it lies on the stack of main, in a page that each fork copies anyway; where threads
 * may outlive main, it is static. */
struct server {
    const struct model *model;
    struct options options;
    struct service_context context;
    struct services services;
    struct identity identity; /* the user that it runs as */
    struct sandbox sandbox;
    struct scoreboard *board;
    struct scoreboard_parts parts; /* of the board */
    struct seats seats;
    int seat;        /* of the last connection that was accepted */
    uint32_t number; /* of it, for the trace */
    struct listener listener;
    struct listener
        *twins; /* with --accept reuseport: the listeners of all workers but the first */
    int twin_count;
    struct process_crew *process_crew; /* the worker processes; or NULL */
    struct uring *ring;                /* of this worker; or NULL */
    struct moment now;                 /* when the last connection was accepted */
    pid_t process;                     /* the one that accepts */
    _Atomic int64_t deadline;          /* of the stop that this process was asked for; or 0 */
    timer_t death;                     /* ends this process where a stop does not end */
    int signals;                       /* signalfd */
    int stop;                          /* eventfd: readable once a stop was requested */
    int wakeup;                        /* eventfd: wakes the accepting process */
    int pressure;                      /* eventfd: wakes event loops if connections must give way */
    int permits;                       /* eventfd: free permits to listen, of event loops; or -1 */
    struct access_log log;             /* if there is one */
    int stats;                         /* the file of --stats; or -1 */
    int service_manager;               /* see service_manager.h; or -1 */
    struct upgrade upgrade;
    struct accepting accepting;
    struct memory_watch memory;
    struct tracing tracing;
    long threads;    /* of this process, beside those that the model makes */
    uint64_t limit;  /* of connections at once */
    sigset_t waking; /* the signals that are blocked even while it waits */
    int exit_status;
};

/* When the stop ends, in monotonic milliseconds; 0: no stop was requested. A worker learns it from
 * the scoreboard. The process that was asked to stop knows it by itself: what others write to the
 * scoreboard can only have it end earlier. */
static inline int64_t server_deadline(const struct server *server)
{
    int64_t own = atomic_load(&server->deadline);
    int64_t shared = atomic_load(&server->board->stop_deadline);

    return own == 0 || (shared != 0 && shared < own) ? shared : own;
}

static inline bool server_stops(const struct server *server)
{
    return server_deadline(server) != 0;
}

#endif
