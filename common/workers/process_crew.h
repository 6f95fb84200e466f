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

/* For the collect of struct model: those that died are replaced at once; one that keeps dying,
 * after a while that grows. */
int process_crew_collect(struct server *server, bool all);

/* Once all have ended. */
void process_crew_free(struct server *server);

/* The CPU time that the living have used, in seconds. */
double process_crew_seconds(const struct server *server);

#endif
