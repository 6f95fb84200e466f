/* A tunnel: bytes go through the proxy in both directions (CONNECT). */
#ifndef COMMON_TUNNEL_H
#define COMMON_TUNNEL_H

#include "common/passage.h"

/* The origin is connected to. */
enum progress tunnel_begin(struct errand *errand);
/* The stage that follows. */
enum progress tunnel_relay(struct errand *errand);

#endif
