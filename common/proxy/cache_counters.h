/* Counts what the cache has done, for the statistics of the server. */
#ifndef COMMON_PROXY_CACHE_COUNTERS_H
#define COMMON_PROXY_CACHE_COUNTERS_H

#include "common/service.h"

enum cache_counter {
    CACHE_HITS,          /* responses from an entry, without asking the origin */
    CACHE_MISSES,        /* responses of the origin */
    CACHE_REVALIDATIONS, /* responses from an entry that the origin has validated just now */
    CACHE_COLLAPSED,     /* responses from what another request has fetched or validated */
    CACHE_BYTES_SAVED,   /* of bodies that no origin had to send */
    CACHE_COUNTERS,
};

extern const struct service_counters cache_counters;

/* Counts a response, and the bytes of its body that no origin had to send. */
void cache_counters_note(const struct service_context *context, enum cache_counter counter,
                         uint64_t bytes_saved);

#endif
