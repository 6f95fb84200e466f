/* Preconditions of a request (RFC 9110, section 13). */
#ifndef COMMON_HTTP_CONDITIONAL_H
#define COMMON_HTTP_CONDITIONAL_H

#include "common/http/request.h"

/* The validators of a representation. */
struct validators {
    struct text etag; /* with its quotes, and W/ if it is weak; empty: none */
    int64_t modified; /* seconds since 1970 */
};

enum verdict {
    VERDICT_GO_ON,
    VERDICT_NOT_MODIFIED, /* 304 */
    VERDICT_FAILED,       /* 412 */
};

bool conditional_is_weak(struct text tag);
/* Returns the entity tag without W/. */
struct text conditional_opaque(struct text tag);

/* Evaluates If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since, in this order. */
enum verdict conditional_judge(const struct request *request, const struct validators *validators,
                               int64_t now);

/* Returns true if If-Range allows the ranges. A date must be a strong validator: older than now by
 * a second. */
bool conditional_range(const struct request *request, const struct validators *validators,
                       int64_t now);

#endif
