/* The life of a server: it opens, accepts connections, has them served, and closes. A model is what
 * stands between accepting and serving: for a new process or thread for each connection, between
 * server_accept() and server_serve(); for a crew, between worker_accept() and worker_serve(). */
#ifndef COMMON_SERVER_H
#define COMMON_SERVER_H

#include "common/listener.h"
#include "common/options.h"
#include "common/proxy.h"
#include "common/scoreboard.h"
#include "common/site.h"

#include <sys/types.h>

/* It is private to the process that accepts: only the counters are shared with its children. In
 * main it stands on the stack, on a page that each fork makes copy-on-write anyway. */
struct server {
    const struct model *model;
    struct options options;
    struct site site;
    struct proxy *proxy; /* or NULL */
    struct scoreboard *board;
    struct listener listener;
    struct listener *twins; /* where each worker has a listener: those of all but the first */
    int twin_count;
    struct crew *crew; /* of processes; or NULL */
    struct moment now; /* when the last connection was accepted */
    pid_t process;     /* that accepts */
    int signals;       /* signalfd */
    int stop;          /* eventfd: readable for good once a stop was asked for */
    int left;          /* eventfd: a connection has ended, or the end has come */
    int duties;        /* eventfd: of event loops, those that nobody has; or -1 */
    int events;        /* epoll: of all that the acceptor waits for */
    int stats;
    int status;      /* /proc/self/status, opened before the sandbox closes */
    uint64_t limit;  /* of connections at once */
    unsigned unseen; /* connections accepted since signals were looked at */
    int64_t looked;  /* when they were, in milliseconds */
    bool refusing;   /* no new clients: a stop was asked for */
    int quiet;       /* milliseconds to wait for those who were about to come */
    int exit_status;
};

/* One of a crew. */
struct worker {
    struct server *server;
    struct listener *listener;
    struct post *post;
    int number; /* from 0 */
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

/* To be called in a child process first: it ends with its parent; */
void server_child(void);
/* and, in one that has served many connections, last: what it remembers is given back. */
void server_child_ends(struct server *server);

/* Counts a process or thread made. */
void server_made(struct server *server);

/* A process or thread cannot be made for a connection (errno says why): waits for a better time.
 * False if there will be none: the connection is closed, and has left. */
bool server_hold(struct server *server, int socket, const char *what);

/* Describes a worker of the crew. */
struct worker server_worker(struct server *server, int number);

/* A worker has begun; and ended. */
void server_worker_began(struct server *server);
void server_worker_ended(struct server *server);

/* Gives the worker the connection that server_accept() took; false if it has one. */
bool server_assign(struct server *server, int number);

/* For whoever started a crew whose workers accept themselves: waits until the server is to stop,
 * and they have ended. */
void server_watch(struct server *server);

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

/* Waits for what is under way, prints the summary, and returns the exit status. */
int server_close(struct server *server);

#endif
