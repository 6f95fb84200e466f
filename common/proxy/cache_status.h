/* The Cache-Status field of a response (RFC 9211). */
#ifndef COMMON_PROXY_CACHE_STATUS_H
#define COMMON_PROXY_CACHE_STATUS_H

#include "common/base/text.h"

#include <stdint.h>

struct cache_status {
    const char *forward; /* why the request went to the origin; NULL: it did not */
    int origin_status;   /* of the origin's response; 0: it sent none */
    bool stored, collapsed;
    const int64_t *seconds_left; /* until the response is stale; or NULL */
};

void cache_status_write(const struct cache_status *status, struct buffer *lines);

#endif
