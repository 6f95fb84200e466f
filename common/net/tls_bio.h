/* How a TLS session reaches the socket of its transport: a BIO of OpenSSL. */
#ifndef COMMON_NET_TLS_BIO_H
#define COMMON_NET_TLS_BIO_H

#include "common/net/transport.h"

struct bio_st;
struct bio_method_st;

struct tls_bio {
    struct transport *transport;
    bool more;    /* further bytes follow those that are written now */
    bool surplus; /* the last read filled its buffer: the socket may hold more */
    bool dry;     /* the last read found nothing */
    bool ended;   /* the client sends no more, whether it has said so or not */
    bool greeted; /* the client has sent something */
    bool plain;   /* and that was not TLS */
    bool reading; /* the session reads: what it writes now are answers to records without data */
    int reads;    /* how often it has read from the socket since it began to */
    int answers;  /* and how often it has written */
};

/* Returns the method of such BIOs, which BIO_meth_free() frees; NULL: no memory. */
struct bio_method_st *tls_bio_method(void);
/* Returns a BIO for the wire, which must outlive it; NULL: no memory. */
struct bio_st *tls_bio_make(struct bio_method_st *method, struct tls_bio *wire);

#endif
