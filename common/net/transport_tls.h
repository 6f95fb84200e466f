/* The transport of TLS; what its connections share is a `struct tls`. */
#ifndef COMMON_NET_TRANSPORT_TLS_H
#define COMMON_NET_TRANSPORT_TLS_H

#include "common/net/transport.h"

/* `shared` is a struct tls. */
extern const struct transport_kind transport_tls;
/* The other side: `shared` is a struct tls_client. */
extern const struct transport_kind transport_tls_client;

/* Returns why no session with the server came about; NULL: nothing is known, or there is one. */
const char *transport_tls_problem(const struct transport *transport);

#endif
