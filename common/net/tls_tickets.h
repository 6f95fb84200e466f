/* The keys of session tickets, which all processes of a server share. They are replaced regularly:
 * a stolen key does not decrypt old sessions. */
#ifndef COMMON_NET_TLS_TICKETS_H
#define COMMON_NET_TLS_TICKETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Periods of this length follow each other, by the monotonic clock. A key encrypts tickets in one,
 * and decrypts them in the next one, too. */
#define TLS_TICKETS_SECONDS 3600

#define TLS_TICKETS_NAME_SIZE 16

struct ticket_key {
    unsigned char name[TLS_TICKETS_NAME_SIZE]; /* in each ticket that the key has encrypted */
    unsigned char cipher[32];
    unsigned char digest[32];
};

/* The key of one period. */
struct tls_tickets_slot {
    _Atomic uint64_t period; /* 0: there is no key */
    struct ticket_key key;
};

/* Lies in shared memory, and begins as zeros. Nobody waits here: a worker that writes nonsense
 * keeps others from resuming sessions, and does no more harm. */
struct tls_tickets {
    struct tls_tickets_slot slots[2]; /* of this period and of the one before, in turn */
};

/* Gets the key that encrypts tickets now, in monotonic seconds; false if there are no random bytes.
 * While another process makes the key of a new period, this one gets a key of its own, whose
 * tickets nobody knows. */
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
