/* The stage that sends the origin's response to the client, and stores it on the way. */
#ifndef COMMON_PROXY_SEND_RESPONSE_H
#define COMMON_PROXY_SEND_RESPONSE_H

#include "common/proxy/cache_store.h"
#include "common/proxy/fetch.h"

/* Begins, once the head of a final response has come. */
enum service_progress send_response_begin(struct cache_store *store, struct fetch *fetch,
                                          struct service_call *call);
enum service_progress send_response_run(struct cache_store *store, struct fetch *fetch,
                                        struct service_call *call);
/* The deadline has passed: breaks the response off. */
enum service_progress send_response_expire(struct cache_store *store, struct fetch *fetch,
                                           struct service_call *call);
/* Sends the client what has come of the body, and watches whether it reads. */
enum transfer send_response_pass_on(struct fetch *fetch, struct service_call *call);
/* The response cannot be completed: ends the connection so that the client notices. */
enum service_progress send_response_break_off(struct fetch *fetch, struct service_call *call);

#endif
