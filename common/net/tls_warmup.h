/* Handshakes of a server with itself. OpenSSL looks up algorithms when it first needs them: without
 * this, each child process would do it again. */
#ifndef COMMON_NET_TLS_WARMUP_H
#define COMMON_NET_TLS_WARMUP_H

#include <stdbool.h>

struct ssl_ctx_st;

/* Serves clients of TLS 1.2 and 1.3 with the context, with new and resumed sessions. False if that
 * fails: the error queue of OpenSSL says why. */
bool tls_warmup_run(struct ssl_ctx_st *context);

#endif
