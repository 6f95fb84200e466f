/* Whether a stored reply is the answer. */
#ifndef COMMON_PROXY_CACHE_LOOKUP_H
#define COMMON_PROXY_CACHE_LOOKUP_H

#include "common/proxy/proxy_request.h"

/* The stages: looking for one; or for one that somebody else is fetching; */
enum service_progress cache_lookup_find(struct service_call *call);
/* judging, once the head of a final reply has come, whether that or a stored one is the answer; */
enum service_progress cache_lookup_judge(struct service_call *call);
/* and failing: a stored one bridges that, or the client is told. */
enum service_progress cache_lookup_fail(struct service_call *call);

#endif
