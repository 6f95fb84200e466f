/* The system calls that a server and its workers need. */
#ifndef COMMON_SANDBOX_CALLS_H
#define COMMON_SANDBOX_CALLS_H

#include "common/base/syscall_filter.h"
#include "common/sandbox/sandbox_rights.h"

/* Fills in the filter of the process that accepts, and of all that it makes. */
void sandbox_calls_server(const struct sandbox *sandbox, struct syscall_filter *filter);

/* Fills in the filter of a worker process, which makes no processes. */
void sandbox_calls_worker(const struct sandbox *sandbox, struct syscall_filter *filter);

/* Fills in the filter of a helper process. */
void sandbox_calls_helper(const struct sandbox *sandbox, struct syscall_filter *filter);

#endif
