/* A tunnel: bytes go through the proxy in both directions (CONNECT). */
#ifndef COMMON_PROXY_TUNNEL_H
#define COMMON_PROXY_TUNNEL_H

#include "common/proxy/proxy_request.h"

/* The origin is connected to. */
enum service_progress tunnel_begin(struct service_call *call);
/* The stage that follows. */
enum service_progress tunnel_run(struct service_call *call);

#endif
