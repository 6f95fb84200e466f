/* How a server begins: by its options it opens all that it needs, and then the sandbox closes. */
#ifndef COMMON_STARTUP_H
#define COMMON_STARTUP_H

#include "common/server.h"

/* To be called before anything is opened: where standard descriptors are closed, the next file
 * would be taken for one of them. */
void startup_fill_standard_descriptors(void);

/* False if something cannot be had: what it is was said. */
bool startup_make_ready(struct server *server);

/* Whether the workers wait for connections themselves, each for one at a time. */
bool startup_workers_wait(const struct server *server);

#endif
