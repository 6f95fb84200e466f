/* What a proxy passes on: the heads of requests and replies, as the next one is to read them. Pure
 * functions. */
#ifndef COMMON_PROXY_REWRITE_H
#define COMMON_PROXY_REWRITE_H

#include "common/http/request.h"
#include "common/http/response_parser.h"

/* A request as it goes to the origin. */
struct rewrite {
    const struct request *request;
    struct text authority;      /* of the origin, as Host says it */
    struct text via;            /* the proxy's own name */
    bool validates;             /* with the proxy's own conditions instead of the client's */
    struct text etag, modified; /* these; or empty */
};

/* The method of the request as it was written. */
struct text rewrite_method(const struct request *request);
/* Its target. */
struct text rewrite_target(const struct request *request);
/* Whether that names its host, as one for a proxy does. */
bool rewrite_is_absolute(const struct request *request);
/* Whether it asks what the whole server can do. */
bool rewrite_is_asterisk(const struct request *request);

/* By how many more the request may be passed on; false if it does not say (Max-Forwards, of OPTIONS
 * and TRACE alone). */
bool rewrite_left(const struct request *request, uint64_t *left);

void rewrite_request(const struct rewrite *rewrite, struct buffer *output);

/* Whether the request has come through the proxy of that name already. */
bool rewrite_has_looped(const struct request *request, struct text via);

/* Writes the fields of a reply that go on to the client, without those that say how long its body
 * is. */
void rewrite_fields(struct text fields, struct buffer *output);
/* Adds the proxy to Via; `minor` is the version that it received. */
void rewrite_via(unsigned minor, struct text via, struct buffer *output);

#endif
