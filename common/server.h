/* The life of a server: it opens, accepts connections, has them served, and closes. A model is what
 * stands between server_accept() and server_serve(). */
#ifndef COMMON_SERVER_H
#define COMMON_SERVER_H

#include "common/listener.h"
#include "common/options.h"
#include "common/scoreboard.h"
#include "common/site.h"

#include <sys/types.h>

/* It is private to the process that accepts: only the counters are shared with its children. In
 * main it stands on the stack, on a page that each fork makes copy-on-write anyway. */
struct server {
    const struct model *model;
    struct options options;
    struct site site;
    struct scoreboard *board;
    struct listener listener;
    struct moment now; /* when the last connection was accepted */
    pid_t process;     /* that accepts */
    int signals;       /* signalfd */
    int stop;          /* eventfd: readable for good once a stop was asked for */
    int left;          /* eventfd: a connection has ended, or the end has come */
    int events;        /* epoll: of all that the acceptor waits for */
    int stats;
    int status;            /* /proc/self/status, opened before the sandbox closes */
    uint64_t limit;        /* of connections at once */
    unsigned unseen;       /* connections accepted since signals were looked at */
    int64_t looked;        /* when they were, in milliseconds */
    bool refusing;         /* no new clients: a stop was asked for */
    int quiet;             /* milliseconds to wait for those who were about to come */
    int64_t warnings_from; /* the second in which warnings are counted */
    int warnings;
    int exit_status;
};

/* Reads the command line and makes all ready. If false, all has been said: main returns
 * exit_status. */
bool server_open(struct server *server, const struct model *model, int argc, char **argv);

/* The next connection, as soon as there may be one more; -1 when the server is to stop. */
int server_accept(struct server *server);

/* Serves a connection to its end, and closes it. This needs little stack; with sanitizers, more. */
#define SERVER_STACK_BYTES (128 * 1024)
void server_serve(struct server *server, int socket);

/* Each connection that was accepted is reported as ended, once. */
void server_left(struct server *server);

/* To be called in a child process first: it ends with its parent. */
void server_child(void);

/* Counts a process or thread made. */
void server_made(struct server *server);

/* A process or thread cannot be made for a connection (errno says why): waits for a better time.
 * False if there will be none: the connection is closed, and has left. */
bool server_hold(struct server *server, int socket, const char *what);

/* Waits for what is under way, prints the summary, and returns the exit status. */
int server_close(struct server *server);

#endif
