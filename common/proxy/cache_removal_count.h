/* Notes which entries are removed, so that a response that was requested before is not stored after
 * the removal. Entries are told apart by the numbers of their names (cache_name.h). */
#ifndef COMMON_PROXY_CACHE_REMOVAL_COUNT_H
#define COMMON_PROXY_CACHE_REMOVAL_COUNT_H

#include "common/proxy/cache_file.h"

/* Returns a count to hand to cache_removal_since() later. */
uint64_t cache_removal_count(const struct cache *cache, uint64_t number);
/* Notes a removal. It must be called before the entry is removed: a process that stores an entry,
 * and finds no removal noted afterwards, knows that any later removal will find its entry. */
void cache_removal_note(const struct cache *cache, uint64_t number);
/* Returns true if the entry was removed since the count was taken, or that is not known any more.
 */
bool cache_removal_since(const struct cache *cache, uint64_t number, uint64_t count);

#endif
