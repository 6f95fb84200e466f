/* The transport of TLS; what its connections share is a `struct tls`. */
#ifndef COMMON_NET_TRANSPORT_TLS_H
#define COMMON_NET_TRANSPORT_TLS_H

#include "common/net/transport.h"

extern const struct transport_kind transport_tls;

#endif
