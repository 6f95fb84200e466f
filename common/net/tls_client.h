/* TLS sessions with one server, of which this process is the client. */
#ifndef COMMON_NET_TLS_CLIENT_H
#define COMMON_NET_TLS_CLIENT_H

#include "common/base/text.h"

#include <stdbool.h>

struct tls_client;
struct tls_bio;
struct ssl_st;

/* Reads the certificates of authorities in PEM form. The certificate of the server must come from
 * one of them, and name the host: a name, or a numeric address without brackets. On failure it
 * prints why and returns NULL. To be called before the sandbox is entered. */
struct tls_client *tls_client_open(const char *authorities, struct text host);
void tls_client_close(struct tls_client *client);

/* Returns a session with the server at the other end of the wire; or NULL. */
struct ssl_st *tls_client_begin(const struct tls_client *client, struct tls_bio *wire);
/* Returns why the session failed. */
const char *tls_client_problem(const struct ssl_st *session);

#endif
