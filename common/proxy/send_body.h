/* How the body of a request goes to the origin. */
#ifndef COMMON_PROXY_SEND_BODY_H
#define COMMON_PROXY_SEND_BODY_H

#include "common/proxy/proxy_request.h"

/* The stage of it. */
enum service_progress send_body_run(struct service_call *call);

#endif
