/* Removes entries from the cache directory: one of them, or the least recently used ones. */
#ifndef COMMON_PROXY_CACHE_EVICT_H
#define COMMON_PROXY_CACHE_EVICT_H

#include "common/proxy/cache_file.h"

void cache_evict_entry(const struct cache *cache, const char *name);
/* Removes the file with the newer head of an entry. Returns the bytes that this frees. */
int64_t cache_evict_record(const struct cache *cache, const char *entry);

/* Counts the size of all entries, and removes the least recently used ones if it is above the
 * limit. This takes long if there are many: cache_keeper.h has it done by another process. */
void cache_evict_trim(const struct cache *cache);
/* Makes room on a full disk: removes so many bytes of the least recently used entries. Returns
 * false if it has removed none. */
bool cache_evict_make_room(const struct cache *cache, uint64_t bytes);
/* Returns true if the shared size has not been counted yet, or cannot be right. */
bool cache_evict_is_due(const struct cache *cache);
/* The size beyond which nothing may be added. */
uint64_t cache_evict_limit(const struct cache *cache);

#endif
