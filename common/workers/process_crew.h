/* A crew of processes that are made before there is work for them. One that dies is replaced. */
#ifndef COMMON_WORKERS_PROCESS_CREW_H
#define COMMON_WORKERS_PROCESS_CREW_H

#include "common/workers/worker.h"

/* Makes the processes. Each does its work, and ends when work() returns. If false, all has been
 * said: main returns the exit status of the server. Where connections are passed to workers,
 * waits() says whether one that was is still on its way; otherwise it is NULL. */
bool process_crew_start(struct server *server, void (*work)(struct worker *worker),
                        bool (*waits)(int number));

/* Whether the worker lives, as far as is known. */
bool process_crew_lives(const struct server *server, int number);

/* The children of a model whose workers are processes. One that dies is replaced at once; one that
 * keeps dying, after a delay that grows. */
extern const struct model_children process_crew_children;

#endif
