/* The passage of one request through the proxy: what its stages share. The rooms that they live in
 * stand one above the other: see stages.h. */
#ifndef COMMON_PROXY_PROXY_REQUEST_H
#define COMMON_PROXY_PROXY_REQUEST_H

#include "common/base/poll_pair.h"
#include "common/proxy/cache.h"
#include "common/proxy/freshness.h"
#include "common/proxy/proxy.h"
#include "common/proxy/response_writer.h"
#include "common/proxy/rewrite.h"
#include "common/proxy/stages.h"
#include "common/proxy/upstream.h"

/* What is only needed once the origin is asked. */
struct fetch {
    struct upstream upstream;
    struct response_writer writer;
    size_t sent;         /* of the lines */
    struct buffer lines; /* to the origin: the head, or what frames a chunk */
    char space[RESPONSE_WRITER_HEAD_LIMIT];
};

struct proxy_request {
    const struct proxy *proxy;
    enum stage stage;
    struct text host; /* of the origin; without the port */
    uint16_t port;
    struct text authority; /* of the origin, as Host says it */
    struct address_list destination;
    int tried;      /* of its addresses */
    bool late;      /* one did not answer in time */
    int64_t origin; /* when the origin must have moved, in milliseconds */
    struct poll_pair poll_pair;
    struct fetch *fetch;
    int failure;         /* the status to tell of it with; in the stage of failing */
    const char *problem; /* likewise */

    /* The store. */
    const struct cache *cache; /* NULL: none */
    struct text uri;           /* from malloc */
    char name[CACHE_NAME_SIZE];
    struct directives asked;
    bool reads, writes;          /* stored replies may be used; the reply may be stored */
    struct cache_entry entry;    /* that was found; it has a file, then */
    struct cached_response kept; /* what that says */
    const char *why;             /* the origin is asked, as Cache-Status names it */
    bool validates;              /* the origin is asked whether the entry is still good */
    bool meanwhile;              /* until the origin has answered, the entry will do as it is */
    bool background;             /* the client has its reply already */
    int served;                  /* with that status */
    int lock;                    /* below 0: not held */
    char locked[CACHE_NAME_SIZE];
    bool followed;        /* somebody else was waited for */
    int64_t follow_since; /* in milliseconds; 0: not begun */
    int follow_wait;
    unsigned follow_looks;
    uint64_t moves;    /* of that name, when it was last looked at */
    int64_t requested; /* when the request went out, in seconds */
    uint64_t removals; /* of replies to its URI, until then */
    bool stale_again;  /* the reply takes the place of a stale one, and is as stale */
    struct cache_writer writer;
    bool storing;
    int64_t finish_by; /* once the client has left; 0: it has not */

    /* The request's body. */
    struct body_reader body_reader;
    struct text piece;    /* of it, that is being sent */
    bool uploaded;        /* all of it is sent, or there is none */
    bool client_slow;     /* it is the client that is waited for */
    int64_t upload_until; /* it must have sent something by then, in milliseconds */
    size_t upload_moved;  /* since that was set */
    int interims;         /* replies before the final one */
    enum stage hinted;    /* where the last of them came */

    /* A tunnel: who has ended. */
    bool client_ended, origin_ended;
};

#endif
