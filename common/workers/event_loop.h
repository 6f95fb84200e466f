/* An event loop: one process or thread serves many connections at once. It steps a connection when
 * the descriptor that it waits for is ready, or its deadline has passed. */
#ifndef COMMON_WORKERS_EVENT_LOOP_H
#define COMMON_WORKERS_EVENT_LOOP_H

#include "common/workers/poller.h"

/* Accepts and serves connections until the server stops and the last one has ended. It waits by
 * this kind of poller. Idle connections hold no buffers. */
void event_loop_run(struct worker *worker, const struct poller_kind *kind);

#endif
