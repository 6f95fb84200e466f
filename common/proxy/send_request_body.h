/* The stage that sends the body of a request to the origin. */
#ifndef COMMON_PROXY_SEND_REQUEST_BODY_H
#define COMMON_PROXY_SEND_REQUEST_BODY_H

#include "common/http/body_reader.h"
#include "common/proxy/fetch.h"

struct send_request_body {
    bool begun;
    struct body_reader reader;
    struct text piece;  /* that is being sent */
    bool complete;      /* the client has sent the whole body */
    bool awaits_client; /* it waits for the client, not for the origin */
    int64_t deadline;   /* of the client, in monotonic milliseconds */
    size_t received;    /* bytes since the deadline was set */
};

enum service_progress send_request_body_run(struct send_request_body *body, struct fetch *fetch,
                                            struct service_call *call);
/* The client or the origin was too slow. */
enum service_progress send_request_body_expire(const struct send_request_body *body,
                                               struct service_call *call);

#endif
