/* A tunnel: bytes go through the proxy in both directions (CONNECT). */
#ifndef COMMON_PROXY_TUNNEL_H
#define COMMON_PROXY_TUNNEL_H

#include "common/proxy/proxy_request.h"

/* The origin is connected to. */
enum progress tunnel_begin(struct errand *errand);
/* The stage that follows. */
enum progress tunnel_relay(struct errand *errand);

#endif
