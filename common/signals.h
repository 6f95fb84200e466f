/* The signals of a server: stop, upgrade, counters, ended children, new certificate. */
#ifndef COMMON_SIGNALS_H
#define COMMON_SIGNALS_H

#include "common/server_state.h"

/* Blocks the signals, and opens the descriptors that replace them. False, with errno set, on
 * failure. */
bool signals_open(struct server *server);

/* Tells the server before this one, if there is one, that this one handles signals and serves. */
void signals_ready(struct server *server);

/* Handles signals that have arrived: the caller knows that there are some. */
void signals_handle(struct server *server);

/* Reaps children that have ended. Returns how long the accepting process may sleep until the next
 * call, in milliseconds; -1: as long as it likes. */
int signals_collect(struct server *server);

/* A stop is through: nothing is left that could hold it up. */
void signals_stopped(struct server *server);

/* Connections end themselves when the time of a stop is over; this much later nobody waits for
 * them.
 */
#define SIGNALS_GRACE_MARGIN 250

#endif
