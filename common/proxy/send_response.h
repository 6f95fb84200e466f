/* How a reply goes to the client, and is kept. */
#ifndef COMMON_PROXY_SEND_RESPONSE_H
#define COMMON_PROXY_SEND_RESPONSE_H

#include "common/proxy/proxy_request.h"

/* The head of a final reply has come, and it is for the client. */
enum progress delivering_begin(struct errand *errand);
/* The stage of delivering it, */
enum progress delivering_deliver(struct errand *errand);
/* and its end if the reply cannot be completed: the client must not take it for whole. */
enum progress delivering_break_off(struct errand *errand);

#endif
