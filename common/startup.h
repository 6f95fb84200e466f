/* How a server starts: it opens all that its options need, and then enters the sandbox. */
#ifndef COMMON_STARTUP_H
#define COMMON_STARTUP_H

#include "common/server_state.h"

/* Opens the standard descriptors that are closed. It comes before all else: otherwise the next file
 * would be taken for one of them. */
void startup_fill_standard_descriptors(void);

/* Opens all. If it fails it says why, and returns false. */
bool startup_prepare(struct server *server, char **argv);

/* Returns true if the workers accept connections themselves, each one at a time. */
bool startup_workers_accept(const struct server *server);

#endif
