/* The life of a server: it opens, accepts connections, has them served, and closes. A model is what
 * stands between accepting and serving: for a new process or thread for each connection, between
 * server_accept() and server_serve(); for a crew, between worker_accept() and worker_serve(). */
#ifndef COMMON_SERVER_H
#define COMMON_SERVER_H

#include "common/base/clock.h"
#include "common/net/listener.h"
#include "common/options.h"
#include "common/scoreboard.h"
#include "common/services.h"

#include <sys/types.h>

/* It is private to the process that accepts: only the counters are shared with its children. In
 * main it stands on the stack, on a page that each fork makes copy-on-write anyway. */
struct server {
    const struct model *model;
    struct options options;
    struct service_context context;
    struct services services;
    struct scoreboard *board;
    struct listener listener;
    struct listener *twins; /* where each worker has a listener: those of all but the first */
    int twin_count;
    struct process_crew *crew; /* of processes; or NULL */
    struct moment now;         /* when the last connection was accepted */
    pid_t process;             /* that accepts */
    int signals;               /* signalfd */
    int stop;                  /* eventfd: readable for good once a stop was asked for */
    int left;                  /* eventfd: a connection has ended, or the end has come */
    int duties;                /* eventfd: of event loops, those that nobody has; or -1 */
    int events;                /* epoll: of all that the acceptor waits for */
    int stats;
    int status;      /* /proc/self/status, opened before the sandbox closes */
    long threads;    /* of this process, beside those that the model makes */
    uint64_t limit;  /* of connections at once */
    unsigned unseen; /* connections accepted since signals were looked at */
    int64_t looked;  /* when they were, in milliseconds */
    bool refusing;   /* no new clients: a stop was asked for */
    int quiet;       /* milliseconds to wait for those who were about to come */
    int exit_status;
};

/* Reads the command line and makes all ready. If false, all has been said: main returns
 * exit_status. */
bool server_open(struct server *server, const struct model *model, int argc, char **argv);

/* Says so, once the crew is there; a server without one has done it. */
void server_ready(const struct server *server);

/* The next connection, as soon as there may be one more; -1 when the server is to stop. */
int server_accept(struct server *server);

/* Serves a connection to its end, and closes it. This needs little stack; with sanitizers, more. */
#define SERVER_STACK_BYTES (128 * 1024)
void server_serve(struct server *server, int socket);

/* Each connection that was accepted is reported as ended, once. */
void server_left(struct server *server);

/* What a model's collect() says while there are children: so many milliseconds. */
#define SERVER_COLLECT_SOON 100

/* Nobody will serve the connection: it is closed, and has left. */
void server_drop(struct server *server, int socket);

/* To be called in a child process first: it ends with its parent; */
void server_child(void);
/* and, in one that has served many connections, last: what it remembers is given back. */
void server_child_ends(struct server *server);

/* Counts a process or thread made. */
void server_made(struct server *server);

/* A process or thread cannot be made for a connection (errno says why): waits for a better time.
 * False if there will be none: the connection is closed, and has left. */
bool server_hold(struct server *server, int socket, const char *what);

/* A worker has begun; and ended. */
void server_worker_began(struct server *server);
void server_worker_ended(struct server *server);

/* Gives the worker the connection that server_accept() took; false if it has one. */
bool server_assign(struct server *server, int number);

/* For whoever started a crew whose workers accept themselves: waits until the server is to stop,
 * and they have ended. */
void server_watch(struct server *server);

/* A number that the kernel keeps of the process that accepts, by its name in /proc/PID/status; -1
 * if it does not tell. */
long server_number(const struct server *server, const char *name);

/* Waits for what is under way, prints the summary, and returns the exit status. */
int server_close(struct server *server);

/* ---- what worker.c shares ---- */

/* After this long without a client, nobody is on the way into the queue of a listener that refuses.
 */
#define SERVER_QUIET_MILLISECONDS 100
/* When descriptors, memory or processes are short, the next try comes after this long, or when a
 * connection ends. */
#define SERVER_SCARCE_MILLISECONDS 100

/* As server_serve(), for a connection that came at that moment, counted in that post. */
void server_serve_at(struct server *server, struct post *post, int socket, struct moment now);
/* Whether there is no place for one more connection. */
bool server_is_full(const struct server *server);
/* Whether the time for those that are being served is over, and so many milliseconds more. */
bool server_is_over(const struct server *server, int64_t margin);
/* Something is short (errno says what): said at most twice a second, whatever comes in, and by
 * whomever. */
void server_warn_scarce(struct server *server, const char *what);

#endif
