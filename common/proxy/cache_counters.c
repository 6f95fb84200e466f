/* Counts what the cache has done. */
#include "common/proxy/cache_counters.h"

_Static_assert(CACHE_COUNTERS <= SCOREBOARD_SERVICE_COUNTERS, "each counter has a place");

const struct service_counters cache_counters = {
    .title = "cache",
    .names =
        {
            [CACHE_HITS] = "hits",
            [CACHE_MISSES] = "misses",
            [CACHE_REVALIDATIONS] = "revalidations",
            [CACHE_COLLAPSED] = "collapsed",
            [CACHE_BYTES_SAVED] = "bytes_saved",
        },
};

void cache_counters_note(const struct service_context *context, enum cache_counter counter,
                         uint64_t bytes_saved)
{
    scoreboard_count(context->board, counter, 1);
    scoreboard_count(context->board, CACHE_BYTES_SAVED, bytes_saved);
}
