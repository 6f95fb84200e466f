/* Updates entries with the head of a newer response. */
#ifndef COMMON_PROXY_CACHE_UPDATE_H
#define COMMON_PROXY_CACHE_UPDATE_H

#include "common/proxy/cache_lookup.h"
#include "common/proxy/fetch.h"

/* Updates the entry with the origin's response, and stores it if it may still be stored (RFC 9111,
 * section 3.2). Sets `fields`, from malloc, and `response` to the updated ones. Returns false if
 * there is no memory. */
bool cache_update_entry(struct cache_lookup *lookup, const struct fetch *fetch,
                        const struct service_call *call, struct buffer *fields,
                        struct cached_response *response);

/* Updates or removes the entry after a response to HEAD (RFC 9111, section 4.3.5). */
void cache_update_by_head(struct cache_lookup *lookup, const struct fetch *fetch,
                          const struct service_call *call);

/* Returns true if a response of that status may mean that the entry is out of date. */
bool cache_update_supersedes(const struct request *request, int status);

#endif
