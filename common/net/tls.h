/* The state that all TLS sessions of a server share: the certificate and its key, and the keys of
 * session tickets. Both are renewed while the server runs. */
#ifndef COMMON_NET_TLS_H
#define COMMON_NET_TLS_H

#include <stdbool.h>

/* For TLS 1.2: forward secrecy and authenticated encryption only. TLS 1.3 has nothing else. */
#define TLS_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

struct tls;
struct tls_bio;
struct key_files;

/* Reads certificate and key in PEM form; with `key_process`, another process has the key and signs.
 * On failure it prints why and returns NULL. To be called before the sandbox is entered and before
 * workers are forked: all of them use the result. */
struct tls *tls_open(const struct key_files *files, bool key_process);

/* Reads both files again: new connections in all processes use them. If they are unusable, it
 * prints why and changes nothing. To be called in the process that called tls_open(). */
void tls_renew(struct tls *tls);

/* To be called in a worker with one thread, which will begin many sessions: if another process has
 * the key, the worker gets a signer of its own. */
void tls_begin_worker(struct tls *tls);

/* Prepares OpenSSL, for servers and for clients; false if there is no memory. */
bool tls_prepare(void);
/* Why the last call of OpenSSL failed. */
const char *tls_reason(void);

/* Returns a session with the client at the other end of the wire; or NULL. */
struct ssl_st *tls_begin(struct tls *tls, struct tls_bio *wire);

/* Gives back the memory that OpenSSL has used before main(), if the server does not use TLS. Each
 * fork would copy it otherwise. */
void tls_forgo(void);

/* Frees it; no session may be open. */
void tls_close(struct tls *tls);

#endif
