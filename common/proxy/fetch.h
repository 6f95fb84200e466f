/* A request to an origin: the stages from the connection to the head of the response. */
#ifndef COMMON_PROXY_FETCH_H
#define COMMON_PROXY_FETCH_H

#include "common/base/poll_pair.h"
#include "common/proxy/cache_lookup.h"
#include "common/proxy/find_origin.h"
#include "common/proxy/origin_connection.h"
#include "common/proxy/response_writer.h"
#include "common/proxy/stage.h"

/* The state of a request to an origin. A request that the cache answers has none. */
struct fetch {
    struct origin *origin;
    struct origin_connection connection;
    struct poll_pair poll_pair;    /* the client and the origin */
    const union address *address;  /* of the origin that it is connected to */
    bool may_keep;                 /* the connection may serve further requests */
    bool may_reuse;                /* it may have served others */
    bool sent_all;                 /* the origin has got the whole request */
    int64_t deadline;              /* of the origin, in monotonic milliseconds */
    int64_t reset_by;              /* the client's connection is reset then; 0: not yet known */
    struct response_writer writer; /* to the client */
    struct cache_body stale;       /* the body that it sends, if that is a stale entry's */
    int served;             /* the status of the stale response that the client has got; 0: none */
    int interims;           /* interim responses so far */
    enum stage interrupted; /* the stage that the last of them interrupted */
    size_t sent;            /* bytes of `lines` sent so far */
    struct buffer lines;    /* for the origin: the head, or what frames a chunk */
    char space[RESPONSE_WRITER_HEAD_LIMIT];
};

/* Returns NULL if there is no memory. */
struct fetch *fetch_make(struct origin *origin);
void fetch_free(struct fetch *fetch, const struct service_call *call);
/* Once the response is whole: keeps the connection for other requests, if it can be. */
void fetch_release(struct fetch *fetch, const struct service_call *call);

/* These run the stages of the same name (stage.h). */
enum service_progress fetch_open(struct fetch *fetch, struct cache_lookup *lookup,
                                 struct service_call *call);
enum service_progress fetch_connect(struct fetch *fetch, const struct cache_lookup *lookup,
                                    struct service_call *call);
enum service_progress fetch_send_head(struct fetch *fetch, struct service_call *call);
enum service_progress fetch_await_head(struct fetch *fetch, struct service_call *call);
enum service_progress fetch_send_interim(struct fetch *fetch, struct cache_lookup *lookup,
                                         struct service_call *call);

/* Tries the next address, after one did not accept the connection in time. */
enum service_progress fetch_connect_late(struct fetch *fetch, const struct cache_lookup *lookup,
                                         struct service_call *call);
/* Sends the request again; if the entry was dropped, without the proxy's own conditions. */
enum service_progress fetch_again(struct fetch *fetch, struct service_call *call);
/* Removes the part, which is of no use, and sends the request again for the whole range. */
enum service_progress fetch_whole(struct fetch *fetch, struct cache_lookup *lookup,
                                  struct service_call *call);
/* Takes the result of origin_connection_head() and goes to the next stage. */
enum service_progress fetch_take_head(struct fetch *fetch, struct service_call *call,
                                      enum transfer transfer);

/* Sends the lines to the origin. */
enum transfer fetch_send_lines(struct fetch *fetch, struct service_call *call);
/* Gives the origin its whole timeout again. */
void fetch_renew_deadline(struct fetch *fetch, const struct service_call *call);
/* Waits for these events (poll_pair.h) of the client and the origin. */
enum service_progress fetch_wait(struct fetch *fetch, struct service_call *call, unsigned client,
                                 unsigned origin);
/* The events to wait for after a transfer. */
unsigned fetch_events(enum transfer transfer);

#endif
