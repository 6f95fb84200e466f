/* A handshake with oneself. OpenSSL looks up what it needs when it needs it, and remembers that: a
 * child process that is made before has to do it all again. */
#ifndef COMMON_NET_TLS_WARMUP_H
#define COMMON_NET_TLS_WARMUP_H

#include <stdbool.h>

struct ssl_ctx_st;

/* Has a server of this context serve clients of both versions of TLS, with new sessions and old
 * ones. False if that fails: the errors of OpenSSL say why. */
bool tls_warmup_run(struct ssl_ctx_st *context);

#endif
