/* The transport of plain TCP. */
#ifndef COMMON_NET_TRANSPORT_PLAIN_H
#define COMMON_NET_TRANSPORT_PLAIN_H

#include "common/net/transport.h"

extern const struct transport_kind transport_plain;

#endif
