/* The keys of session tickets, which all processes of a server share. They are replaced regularly:
 * a stolen key does not decrypt old sessions. */
#ifndef COMMON_NET_TLS_TICKETS_H
#define COMMON_NET_TLS_TICKETS_H

#include "common/base/lock.h"

#include <stdint.h>

/* A key encrypts tickets for this time, and then decrypts them for the same time. */
#define TLS_TICKETS_SECONDS 3600

#define TLS_TICKETS_NAME_SIZE 16

struct ticket_key {
    unsigned char name[TLS_TICKETS_NAME_SIZE]; /* in each ticket that the key has encrypted */
    unsigned char cipher[32];
    unsigned char digest[32];
};

/* Lies in shared memory. */
struct tls_tickets {
    struct lock lock;
    struct ticket_key current, previous;
    int64_t since; /* start of the current key, by the monotonic clock */
    bool filled;   /* there are keys */
};

bool tls_tickets_open(struct tls_tickets *tickets);

/* Gets the key that encrypts tickets now; false if there is none. */
bool tls_tickets_current(struct tls_tickets *tickets, int64_t now, struct ticket_key *key);

enum ticket_age {
    TICKET_UNKNOWN, /* the key is gone */
    TICKET_FRESH,
    TICKET_AGEING, /* the client should get a new ticket */
};

/* Finds the key of that name. */
enum ticket_age tls_tickets_find(struct tls_tickets *tickets, const unsigned char *name,
                                 int64_t now, struct ticket_key *key);

#endif
