/* Memory that was needed for many connections, and is not needed for the few that are left. */
#ifndef COMMON_BASE_MEMORY_RETURN_H
#define COMMON_BASE_MEMORY_RETURN_H

#include <stdbool.h>
#include <stdint.h>

/* Begins with zeros. */
struct memory_return {
    bool threads;  /* each connection has a thread */
    bool pieces;   /* a connection takes many small pieces, in this thread */
    int64_t most;  /* connections since memory was given back */
    int64_t since; /* when they became few, in milliseconds; 0: they are many */
};

/* Notes that there are so many connections. */
static inline void memory_return_note(struct memory_return *memory, int64_t connections)
{
    if (connections > memory->most)
        memory->most = connections;
}

/* Gives freed memory back to the kernel if there have been few connections for a while, after many.
 * Returns after how many milliseconds at most it must be called again; -1: there is no need to. */
int memory_return_review(struct memory_return *memory, int64_t connections, int64_t now);

#endif
