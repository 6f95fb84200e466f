/* A process that keeps the cache below its limit: to trim it, one has to look at all entries, and
 * no client shall wait for that. It also notices that the directory has been deleted. */
#ifndef COMMON_PROXY_CACHE_KEEPER_H
#define COMMON_PROXY_CACHE_KEEPER_H

#include "common/base/helper_process.h"
#include "common/proxy/cache_file.h"

/* Starts the process, which ends when all processes that inherited its socket have ended. If the
 * directory is deleted, it sends SIGUSR2 to this process, so that a new server takes its place and
 * makes the directory again: the sandbox lets this one enter no new directory. On failure it prints
 * why and returns false. */
bool cache_keeper_open(struct cache *cache, const struct helper_process_confinement *confinement);
void cache_keeper_close(struct cache *cache);

/* As cache_evict_trim(), soon. Does not wait. */
void cache_keeper_trim(const struct cache *cache);
/* As cache_evict_make_room(). Waits for a moment: returns false if that was too short. */
bool cache_keeper_make_room(const struct cache *cache, uint64_t bytes);

/* Returns true if the directory has been deleted. */
bool cache_keeper_misses_directory(const struct cache *cache);

#endif
