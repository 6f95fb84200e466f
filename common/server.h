/* The life of a server: it opens, accepts connections, serves them, and closes. A model connects
 * accepting and serving: it calls server_accept() and server_serve() where each connection gets a
 * process or thread, worker_accept() and worker_serve() where it has workers. */
#ifndef COMMON_SERVER_H
#define COMMON_SERVER_H

#include "common/server_state.h"

/* Reads the command line and prepares the server. If it returns false, it has printed why, and main
 * returns exit_status. */
bool server_open(struct server *server, const struct model *model, int argc, char **argv);

/* Announces that the server listens. A model with workers or a template calls this once they
 * exist; the others need not. */
void server_ready(struct server *server);

/* Returns the next connection, when there is one and a seat for it; -1 when the server stops. */
int server_accept(struct server *server);

/* Serves a connection to its end, and closes it. It needs this much stack, most of it for
 * sanitizers. */
#define SERVER_STACK_BYTES (128 * 1024)
void server_serve(struct server *server, int socket);
/* As server_serve(), for a connection that came at the time `now`, is counted in `slot` and has
 * this seat, which is free afterwards. */
void server_serve_at(struct server *server, struct scoreboard_slot *slot, int seat, int socket,
                     struct moment now);

/* Reports the end of a connection. Each one that was accepted is reported once. */
void server_left(struct server *server);
/* Closes a connection that cannot be served, and reports its end. */
void server_drop(struct server *server, int socket);

/* Called after a process or thread for the connection could not be made (errno says why): waits
 * until that may succeed. If the server stops, it closes the connection, reports its end, and
 * returns false. */
bool server_hold(struct server *server, int socket, const char *what);

/* Counts a process or thread that was made for the last connection. */
void server_made(struct server *server);
void server_made_child(struct server *server, pid_t child);
/* Reports the end of a connection whose child has died without reporting it. False if the child has
 * no seat: it has reported the end itself, or it is not of this server. */
bool server_lost_child(struct server *server, pid_t child);
/* Returns true if there is a connection that has not ended. */
bool server_has_clients(const struct server *server);

/* The result of a model's collect() while it has children: the milliseconds until the next call. */
#define SERVER_COLLECT_SOON 100

/* A child process calls this first: it then ends with its parent, and has fewer rights. */
void server_child(struct server *server);
/* Returns the listener at which the clients of a worker wait. */
struct listener *server_listener(struct server *server, int worker);
/* A thread calls this before server_serve_at(). */
void server_thread(const struct server *server);
/* A child process that has served many connections calls this last: it frees its memory. */
void server_child_ends(struct server *server);

/* Count a worker that has begun, and one that has ended. */
void server_worker_began(struct server *server);
void server_worker_ended(struct server *server);

/* Assigns the connection that server_accept() returned to a worker; false if it has one. */
bool server_assign(struct server *server, int number);
/* Takes the assignment back: the worker has not got the connection. */
void server_unassign(struct server *server, int number);

/* For a process whose workers accept themselves: waits until the server stops and they have ended.
 */
void server_watch(struct server *server);

/* Waits for connections to end, prints the summary, and returns the exit status. */
int server_close(struct server *server);

#endif
