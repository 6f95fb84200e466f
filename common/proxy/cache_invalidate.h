/* Removes entries that a request has made invalid (RFC 9111, section 4.4). */
#ifndef COMMON_PROXY_CACHE_INVALIDATE_H
#define COMMON_PROXY_CACHE_INVALIDATE_H

#include "common/proxy/cache_lookup.h"
#include "common/proxy/fetch.h"

/* Returns true if Content-Location says that the response is what a GET of the same URI would get.
 */
bool cache_invalidate_is_about_target(const struct cache_lookup *lookup, const struct fetch *fetch);
/* Removes the entries of the URI, and of those that Location and Content-Location name, if the
 * request had an unsafe method and the response is no error. */
void cache_invalidate(const struct cache_lookup *lookup, const struct fetch *fetch,
                      enum method method);

#endif
