/* Preconditions (RFC 9110, section 13). */
#ifndef COMMON_HTTP_CONDITIONAL_H
#define COMMON_HTTP_CONDITIONAL_H

#include "common/http/request.h"

/* What a representation can be compared by. */
struct validators {
    struct text etag; /* with its quotes, perhaps weak; empty if there is none */
    int64_t modified; /* seconds since 1970 */
};

enum verdict {
    VERDICT_GO_ON,
    VERDICT_NOT_MODIFIED, /* 304 */
    VERDICT_FAILED,       /* 412 */
};

/* Whether an entity tag is weak; and the tag without what says so. */
bool conditional_is_weak(struct text tag);
struct text conditional_opaque(struct text tag);

/* Judges If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since, in their order. */
enum verdict conditional_judge(const struct request *request, const struct validators *validators,
                               int64_t now);

/* Whether Range may be honoured, by If-Range. A date counts only once it is a strong validator: a
 * second older than now. */
bool conditional_range(const struct request *request, const struct validators *validators,
                       int64_t now);

#endif
