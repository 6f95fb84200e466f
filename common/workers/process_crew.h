/* The worker processes of a server, which are made in advance. */
#ifndef COMMON_WORKERS_PROCESS_CREW_H
#define COMMON_WORKERS_PROCESS_CREW_H

#include "common/workers/worker.h"

/* The knowledge of a model about its workers; each may be NULL. */
struct process_crew_calls {
    /* Returns true if a connection was passed to the worker, and not taken. */
    bool (*is_pending)(int number);
    /* Called for a worker that has died. */
    void (*bury)(pid_t process);
};

/* Makes the processes. Each calls work(), and ends when that returns. If it returns false, all
 * messages have been printed, and main returns the exit status of the server. `calls` may be NULL.
 */
bool process_crew_start(struct server *server, void (*work)(struct worker *worker),
                        const struct process_crew_calls *calls);

/* Returns true if the worker is not known to be dead. */
bool process_crew_lives(const struct server *server, int number);

/* How the server deals with the processes. One that dies is replaced at once; one that keeps dying,
 * after a delay that grows. */
extern const struct model_children process_crew_children;

#endif
