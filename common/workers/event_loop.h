/* An event loop: one process or thread serves many connections at once. Each waits on a descriptor
 * that does not block, and takes a step when that is ready or its deadline has passed. */
#ifndef COMMON_WORKERS_EVENT_LOOP_H
#define COMMON_WORKERS_EVENT_LOOP_H

#include "common/workers/worker.h"

/* Accepts and serves the worker's connections until the server is to stop, and the last of them has
 * ended. Those that are idle hold no buffers. */
void event_loop_run(struct worker *worker);

#endif
