/* How a reply goes to the client, and is kept. */
#ifndef COMMON_PROXY_SEND_RESPONSE_H
#define COMMON_PROXY_SEND_RESPONSE_H

#include "common/proxy/proxy_request.h"

/* The head of a final reply has come, and it is for the client. */
enum service_progress send_response_begin(struct service_call *call);
/* The stage of delivering it, */
enum service_progress send_response_run(struct service_call *call);
/* and its end if the reply cannot be completed: the client must not take it for whole. */
enum service_progress send_response_break_off(struct service_call *call);

#endif
