/* The replacement of a running server by a new one, which starts from the same path with the same
 * arguments, takes over the listening sockets, and tells this one when it is ready. */
#ifndef COMMON_UPGRADE_H
#define COMMON_UPGRADE_H

#include "common/server_state.h"

/* Starts the new server. If that fails, this one goes on and says why. */
void upgrade_begin(struct server *server);

/* Called when a stop is requested: a new server that is not ready yet stops, too. */
void upgrade_abandon(struct server *server);

enum upgrade_event {
    UPGRADE_NOTHING,
    /* The listening sockets are those of another server: this one only finishes. */
    UPGRADE_HANDED_OVER,
};
/* Reads the messages of the server before or after this one. Call it at SIGIO. */
enum upgrade_event upgrade_hear(struct server *server);

/* Make the connections to the other servers: first to the process that starts the new one, which
 * must not inherit what is opened later; then, once there are listeners, the rest. False, with
 * errno set, on failure. */
bool upgrade_open(struct server *server, char **argv);
bool upgrade_pass(struct server *server);

/* Tells the server before this one that this one is ready. */
void upgrade_report(const struct server *server);

/* Lets the helper process end. */
void upgrade_close(struct server *server);
/* In a worker process: it has no part in an upgrade, and could end the helper process. */
void upgrade_leave(struct server *server);

#endif
