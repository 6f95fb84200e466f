/* The transport of a request that came in a UDP datagram. */
#ifndef COMMON_NET_TRANSPORT_DATAGRAM_H
#define COMMON_NET_TRANSPORT_DATAGRAM_H

#include "common/net/transport.h"

/* A descriptor that is no datagram's is served as plain TCP. */
extern const struct transport_kind transport_datagram;

#endif
