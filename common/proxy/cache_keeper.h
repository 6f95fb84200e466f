/* A process that keeps the cache below its limit: to trim it, one has to look at all entries, and
 * no client shall wait for that. It also notices that the directory has been deleted. */
#ifndef COMMON_PROXY_CACHE_KEEPER_H
#define COMMON_PROXY_CACHE_KEEPER_H

#include "common/base/helper_process.h"
#include "common/proxy/cache_file.h"

/* Starts the process, which ends when all processes have ended that have inherited its socket. If
 * the directory is deleted, it asks this process by SIGUSR2 for a server in its place, which makes
 * the directory again: the sandbox lets nobody enter a new one. Says why it cannot, and returns
 * false. */
bool cache_keeper_open(struct cache *cache, const struct helper_process_confinement *confinement);
void cache_keeper_close(struct cache *cache);

/* As cache_evict_trim(), soon. Does not wait. */
void cache_keeper_trim(const struct cache *cache);
/* As cache_evict_make_room(). Waits for a moment: returns false if that was too short. */
bool cache_keeper_make_room(const struct cache *cache, uint64_t bytes);

/* Returns true if the directory has been deleted. */
bool cache_keeper_misses_directory(const struct cache *cache);

#endif
