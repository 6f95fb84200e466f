/* The heads of requests and responses as the proxy forwards them (RFC 9110, section 7.6). Pure
 * functions. */
#ifndef COMMON_PROXY_REWRITE_H
#define COMMON_PROXY_REWRITE_H

#include "common/http/request.h"
#include "common/http/response_parser.h"
#include "common/proxy/forwarded.h"

/* A request to an origin. */
struct rewrite {
    const struct request *request;
    struct text authority;             /* of the origin, for the Host field */
    struct text via;                   /* the proxy's own name */
    bool keeps_connection;             /* further requests may follow on the connection */
    const struct forwarded *forwarded; /* NULL: the origin is told nothing of the client */
    bool validates;                    /* with the proxy's conditions instead of the client's: */
    struct text etag, modified; /* values for If-None-Match and If-Modified-Since; or empty */
    struct text rest,
        if_range; /* values for Range and If-Range in place of the client's; or empty */
};

/* The method and the target, as the client wrote them. */
struct text rewrite_method(const struct request *request);
struct text rewrite_target(const struct request *request);
/* Returns true if the target is a whole URI. */
bool rewrite_is_absolute(const struct request *request);
/* Returns true for "OPTIONS *", which asks about the server as a whole. */
bool rewrite_is_asterisk(const struct request *request);

/* Reads how often the request may still be forwarded (Max-Forwards, of OPTIONS and TRACE). Returns
 * false if it does not say. */
bool rewrite_left(const struct request *request, uint64_t *left);

void rewrite_request(const struct rewrite *rewrite, struct buffer *output);

/* Returns true if Via says that the proxy of that name has forwarded the request before. */
bool rewrite_has_looped(const struct request *request, struct text via);

/* Writes the fields of a response that are forwarded, except those for the length of its body, and
 * those of one more name, which may be empty. */
void rewrite_fields(struct text fields, struct text except, struct buffer *output);
/* Adds the proxy to Via. `minor` is the version of the message that it received. */
void rewrite_via(unsigned minor, struct text via, struct buffer *output);

#endif
