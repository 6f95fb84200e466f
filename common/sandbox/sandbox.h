/* Limits what an attacker who has taken over the server could do. */
#ifndef COMMON_SANDBOX_H
#define COMMON_SANDBOX_H

#include "common/sandbox/sandbox_rights.h"

/* Takes all rights from this process and its future children but those of the sandbox. Open
 * descriptors are not affected. If the kernel cannot do that, it prints a warning. */
void sandbox_enter(struct sandbox *sandbox);

/* For a worker process of a server that is in the sandbox: takes the right to make processes, to
 * signal other workers, and to trace them. */
void sandbox_enter_worker(const struct sandbox *sandbox);

/* For a child that serves one connection: takes the right to make processes. This is one system
 * call; a domain of its own would make the child cost 5% more. The filter of the server lets no
 * child signal or trace another one. */
void sandbox_enter_child(const struct sandbox *sandbox);

/* For a helper process outside the sandbox, and for the supervisor of such processes. Takes all
 * system calls but a few, and the rights to all files but those of the directory that it may write,
 * if there is one. */
void sandbox_enter_helper(struct sandbox *sandbox);

#endif
