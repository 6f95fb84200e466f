/* The Cache-Control field (RFC 9111, section 5.2; RFC 5861 for stale responses). */
#ifndef COMMON_PROXY_CACHE_CONTROL_H
#define COMMON_PROXY_CACHE_CONTROL_H

#include "common/base/text.h"

#include <stdint.h>

/* The largest number of seconds: larger ones mean the same (RFC 9111, section 1.2.2). */
#define CACHE_CONTROL_FOREVER INT64_C(2147483648)

/* The directives of a request or a response. Seconds are -1 where there is no such directive. */
struct cache_control {
    bool no_store;
    bool no_cache;
    bool no_cache_fields; /* only for the fields that it names */
    bool is_private;
    bool private_fields; /* only for the fields that it names */
    bool is_public;
    bool must_revalidate;
    bool proxy_revalidate;
    bool must_understand;
    bool only_if_cached;
    int64_t max_age;
    int64_t s_maxage;
    int64_t min_fresh;
    int64_t max_stale;
    int64_t stale_if_error;
    int64_t stale_while_revalidate;
};

/* Reads all Cache-Control fields, or Pragma in a request without any. A malformed directive is read
 * in its most restrictive sense. */
void cache_control_read(struct text fields, bool of_request, struct cache_control *control);

/* Reads the targeted fields of that name (RFC 9213). Returns false if there is none, or if they are
 * empty or malformed: Cache-Control counts then. */
bool cache_control_read_targeted(struct text fields, struct text name,
                                 struct cache_control *control);

/* Returns true if the directive, in the form no-cache="a, b" or private="a, b", names the field. */
bool cache_control_names(struct text fields, struct text directive, struct text name);

/* Reads seconds. Returns `malformed` if the digits are no number. */
int64_t cache_control_seconds(struct text digits, int64_t malformed);

#endif
