/* The rules of a shared cache (RFC 9111; RFC 5861 for stale responses), as pure functions of header
 * fields and times. */
#ifndef COMMON_PROXY_FRESHNESS_H
#define COMMON_PROXY_FRESHNESS_H

#include "common/base/text.h"
#include "common/proxy/cache_control.h"

#include <stdint.h>

/* The longest heuristic lifetime, in seconds. */
#define FRESHNESS_HEURISTIC_LIMIT INT64_C(86400)

/* The head of a response, as far as a cache needs it. */
struct cached_response {
    int status;
    struct cache_control control;
    int64_t requested, received; /* when the request went out, and the head of the response came */
    int64_t date;                /* of the Date field, or `received` */
    int64_t age;                 /* of the Age field */
    bool has_expires, has_modified, has_cookie;
    int64_t expires, modified;
    struct text etag; /* with its quotes, perhaps weak; or empty */
    struct text modified_text;
};

void freshness_read(struct cached_response *response, int status, struct text fields,
                    int64_t requested, int64_t received);

/* Has CDN-Cache-Control override Cache-Control and Expires, if there is one. */
void freshness_read_targeted(struct cached_response *response, struct text fields);

/* Returns true if a response of that status is about one request alone: it is never stored, and
 * says nothing about an entry. */
bool freshness_is_for_one(int status);
/* Returns true if the response says how long it is fresh. */
bool freshness_is_explicit(const struct cached_response *response);
/* Returns true if the request has credentials: the response says nothing about what others get. */
bool freshness_has_credentials(struct text request_fields);
/* Returns true if the response to a GET may be stored (RFC 9111, section 3). */
bool freshness_may_store(const struct cached_response *response, struct text request_fields,
                         struct text response_fields);

/* The seconds for which the response is fresh, and its age in seconds (RFC 9111, section 4.2). */
int64_t freshness_lifetime(const struct cached_response *response);
int64_t freshness_age(const struct cached_response *response, int64_t now);
/* Returns true if a request without Cache-Control may use the response as it is. */
bool freshness_is_fresh(const struct cached_response *response, int64_t now);

enum freshness_use {
    FRESHNESS_FRESH,              /* as it is */
    FRESHNESS_STALE,              /* stale: the client accepts that */
    FRESHNESS_WHILE_REVALIDATING, /* stale, while the origin validates it */
    FRESHNESS_VALIDATE,           /* once the origin has validated it */
};

/* Returns how an entry may be used for a request with these directives. */
enum freshness_use freshness_judge(const struct cached_response *response,
                                   const struct cache_control *request, int64_t now);

/* Returns true if the response may be used after the origin has failed. It may be stale for the
 * seconds of stale-if-error, or for `permitted` if that is more; -1 permits nothing beyond it. */
bool freshness_bridges_error(const struct cached_response *response,
                             const struct cache_control *request, int64_t permitted, int64_t now);
/* Returns true if a response of that status is such a failure. */
bool freshness_is_error(int status);

#endif
