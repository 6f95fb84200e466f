/* TLS: the certificate and its key, the keys of session tickets, and how both are renewed while
 * connections are served. */
#ifndef COMMON_NET_TLS_H
#define COMMON_NET_TLS_H

struct tls;
struct tls_wire;

/* Reads certificate and key, in PEM form; NULL: it has said why not. To be called before the
 * sandbox closes, and before there are other processes: all of them may use what it returns. */
struct tls *tls_open(const char *certificate, const char *key);

/* Reads both again: connections that begin from now on use them, in whichever process. If they are
 * no good, it says why, and all stays as it is. For the process that called tls_open(). */
void tls_renew(struct tls *tls);

/* Returns a session with the client at the other end of the wire; or NULL. */
struct ssl_st *tls_begin(struct tls *tls, struct tls_wire *wire);

/* TLS is not wanted in this process nor in any that it makes: gives back the memory that starting a
 * program with OpenSSL in it took. Without that each fork would have to copy it. */
void tls_forgo(void);

/* Nobody uses it any more. */
void tls_close(struct tls *tls);

#endif
