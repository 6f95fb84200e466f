/* The stages that choose between the origin's response and an entry of the cache. */
#ifndef COMMON_PROXY_FETCH_OUTCOME_H
#define COMMON_PROXY_FETCH_OUTCOME_H

#include "common/proxy/cache_store.h"
#include "common/proxy/fetch.h"

/* The head of a final response has come. */
enum service_progress fetch_outcome_run(struct cache_store *store, struct fetch *fetch,
                                        struct service_call *call);
/* The origin has failed: responds with the entry if that may be stale, or with the error. */
enum service_progress fetch_outcome_fail(struct cache_lookup *lookup, struct service_call *call);

#endif
