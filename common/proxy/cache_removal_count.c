/* Notes removals in the memory that the processes share: each slot has a ring of the latest ones.
 */
#include "common/proxy/cache_removal_count.h"

#include "common/proxy/cache_shared.h"

uint64_t cache_removal_count(const struct cache *cache, uint64_t number)
{
    return atomic_load(&cache->shared->removals[number % CACHE_SHARED_SLOTS]);
}

void cache_removal_note(const struct cache *cache, uint64_t number)
{
    size_t slot = number % CACHE_SHARED_SLOTS;
    uint64_t place = atomic_fetch_add(&cache->shared->removals[slot], 1);

    atomic_store(&cache->shared->removed[slot][place % CACHE_SHARED_REMOVALS], number);
}

bool cache_removal_since(const struct cache *cache, uint64_t number, uint64_t count)
{
    size_t slot = number % CACHE_SHARED_SLOTS;
    uint64_t now = atomic_load(&cache->shared->removals[slot]);

    if (now - count > CACHE_SHARED_REMOVALS)
        return true;
    for (; count != now; count++)
        if (atomic_load(&cache->shared->removed[slot][count % CACHE_SHARED_REMOVALS]) == number)
            return true;
    return false;
}
