/* What is kept of the replies of the origin. */
#ifndef COMMON_PROXY_CACHE_STORE_H
#define COMMON_PROXY_CACHE_STORE_H

#include "common/proxy/proxy_request.h"

/* Makes of the entry what the head of a newer reply says, and stores it so, if it may still be
 * stored. Its fields are from malloc then. False if there is no memory. */
bool cache_store_renew(struct service_call *call, struct buffer *fields,
                       struct cached_response *response);

/* The head of a final reply has come: removes what it makes invalid, begins to store it, or gives
 * way to others that wait for it. */
void cache_store_take(struct service_call *call);
/* A piece of its body has come: whether it is stored now. */
bool cache_store_add(struct service_call *call, struct text data);
/* It is whole, or will never be. */
void cache_store_finish(struct service_call *call, bool whole);
/* Writes Cache-Status for a reply from the origin. */
void cache_store_describe(const struct service_call *call, struct buffer *lines);

#endif
