/* The life of a server: it opens, accepts connections, serves them, and closes. A model is what
 * stands between accepting and serving: between server_accept() and server_serve() for a new
 * process or thread for each connection, between worker_accept() and worker_serve() for workers. */
#ifndef COMMON_SERVER_H
#define COMMON_SERVER_H

#include "common/server_state.h"

/* Reads the command line and prepares all. If it returns false, all messages have been printed, and
 * main returns exit_status. */
bool server_open(struct server *server, const struct model *model, int argc, char **argv);

/* Announces that the server listens. A model with workers calls this once they exist; the others
 * need not. */
void server_ready(const struct server *server);

/* Returns the next connection, when there is one and a place for it; -1 when the server stops. */
int server_accept(struct server *server);

/* Serves a connection to its end, and closes it. It needs this much stack, most of it for
 * sanitizers. */
#define SERVER_STACK_BYTES (128 * 1024)
void server_serve(struct server *server, int socket);
/* As server_serve(), for a connection that came at that moment and is counted in that slot. */
void server_serve_at(struct server *server, struct scoreboard_slot *slot, int socket,
                     struct moment now);

/* Reports the end of a connection. Each one that was accepted is reported once. */
void server_left(struct server *server);
/* Closes a connection that cannot be served, and reports its end. */
void server_drop(struct server *server, int socket);

/* A process or thread could not be made for a connection (errno says why): waits until it may
 * succeed. False if the server stops: then the connection is closed, and its end reported. */
bool server_hold(struct server *server, int socket, const char *what);

/* Counts a process or thread that was made. */
void server_made(struct server *server);

/* What the collect() of a model returns while there are children: look again in so many
 * milliseconds. */
#define SERVER_COLLECT_SOON 100

/* A child process calls this first: it shall end with its parent. */
void server_child(void);
/* A child process that has served many connections calls this last: it frees its memory. */
void server_child_ends(struct server *server);

/* A worker has begun; a worker has ended. */
void server_worker_began(struct server *server);
void server_worker_ended(struct server *server);

/* Assigns the connection that server_accept() returned to a worker; false if it has one. */
bool server_assign(struct server *server, int number);

/* For a process whose workers accept themselves: waits until the server stops and they have ended.
 */
void server_watch(struct server *server);

/* Waits for connections to end, prints the summary, and returns the exit status. */
int server_close(struct server *server);

#endif
