/* How the origin is asked. */
#ifndef COMMON_PROXY_FETCH_H
#define COMMON_PROXY_FETCH_H

#include "common/proxy/proxy_request.h"

/* The stages: opening, */
enum service_progress fetch_open(struct service_call *call);
/* connecting, */
enum service_progress fetch_connect(struct service_call *call);
/* sending the head of the request, */
enum service_progress fetch_send(struct service_call *call);
/* awaiting the head of the reply, */
enum service_progress fetch_await(struct service_call *call);
/* and passing on what comes before that. */
enum service_progress fetch_hint(struct service_call *call);

/* Begins to connect to the next address. */
enum service_progress fetch_try_next(struct service_call *call);
/* Asks once more; without the proxy's own conditions, once it has dropped the entry. */
enum service_progress fetch_again(struct service_call *call);
/* Sends the lines; what stands in the way of that may be a reply that came early. */
enum transfer fetch_send_lines(struct service_call *call);
/* What to do once the head of a reply has come, or will not. */
enum service_progress fetch_take_head(struct service_call *call, enum transfer transfer);

#endif
