/* The registry of services: services.c is the only file that includes them. It gives each its
 * settings, and opens and closes it. */
#ifndef COMMON_SERVICES_H
#define COMMON_SERVICES_H

#include "common/base/identity.h"
#include "common/net/listener.h"
#include "common/options.h"
#include "common/sandbox/sandbox.h"

#include <stddef.h>

#define SERVICES_STATE_SIZE 192

/* The state of the service that the server has. */
struct services {
    const struct services_row *row; /* NULL: none is open */
    /* Of a type that services.c alone knows. No memory of its own: a process that ends, or a start
     * that fails, has nothing to free. */
    _Alignas(max_align_t) unsigned char state[SERVICES_STATE_SIZE];
    int cache_directory; /* of the proxy; -1: none */
    bool lasting;        /* the process serves many connections */
};

/* Returns the service with this name; NULL if there is none. */
const struct service *services_find(const char *name);
/* Returns the name of a service by its number, from 0; NULL behind the last one. */
const char *services_name(int number);

/* Opens what needs the rights that the server was started with. If it fails it says why. */
bool services_open(struct services *services, const struct options *options,
                   const struct identity *user, bool lasting);
/* Opens the rest, with the rights of the server's user. If it fails it says why. */
bool services_start(struct services *services, const struct options *options,
                    const struct listener *listener);
/* Returns how many descriptors each process needs, beside those of its connections. */
int services_descriptors(const struct options *options, bool lasting);
/* Closes what has been idle for too long. Returns after how many milliseconds it must be called
 * again; -1: there is no need to. `others`: other threads serve connections meanwhile. */
int services_review(const struct services *services, int64_t now, bool others);
/* At a stop: closes all that is idle. */
void services_drain(const struct services *services);
/* Says why the service needs a new server in place of this one, if it does. */
void services_explain_upgrade(const struct services *services, const struct options *options);
/* Returns the state that the service's functions get. */
const void *services_state(const struct services *services);
/* Returns the rights that the service needs in the sandbox. */
struct sandbox services_sandbox(const struct services *services);
/* Prints what the server serves. */
void services_print(const struct options *options);

void services_close(struct services *services);
/* For a process that was made for one connection, and waits for a second request on it: a cache of
 * its own may pay from now on. */
void services_stay(struct services *services);
/* For a process of one thread that serves many connections, before it enters its sandbox: from now
 * on the kernel tells it of changes to what it keeps. */
void services_watch(struct services *services);
/* For a process that served connections, and ends before the server does: frees its own memory,
 * and leaves alone what processes share. */
void services_end_child(struct services *services);

#endif
