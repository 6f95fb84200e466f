/* Lets the kernel end the children of a server before the server when memory runs out. */
#ifndef COMMON_BASE_OOM_GUARD_H
#define COMMON_BASE_OOM_GUARD_H

#include <sys/types.h>

/* Starts the process that does it, for the children of this process. Returns the socket to ask it
 * at; -1 on failure, with errno set. */
int oom_guard_open(void);

/* Asks for this child, without waiting; -1 instead of a socket asks nobody. */
void oom_guard_ask(int guard, pid_t child);

/* Lets the process end. */
void oom_guard_close(int guard);

#endif
