/* The stage that sends an entry while another request stores it. */
#ifndef COMMON_PROXY_FOLLOW_H
#define COMMON_PROXY_FOLLOW_H

#include "common/proxy/cache_lookup.h"
#include "common/proxy/fetch.h"

enum service_progress follow_run(struct cache_lookup *lookup, struct fetch *fetch,
                                 struct service_call *call);

#endif
