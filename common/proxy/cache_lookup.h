/* Whether a stored reply is the answer. */
#ifndef COMMON_PROXY_CACHE_LOOKUP_H
#define COMMON_PROXY_CACHE_LOOKUP_H

#include "common/proxy/proxy_request.h"

/* The stages: looking for one; or for one that somebody else is fetching; */
enum progress stored_look(struct errand *errand);
/* judging, once the head of a final reply has come, whether that or a stored one is the answer; */
enum progress stored_judge(struct errand *errand);
/* and failing: a stored one bridges that, or the client is told. */
enum progress stored_fail(struct errand *errand);

#endif
