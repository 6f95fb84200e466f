/* The keys of session tickets: the same in all processes of a server, and gone after a while, so
 * that what was sent long ago cannot be read by whoever finds a key. */
#ifndef COMMON_NET_TICKETS_H
#define COMMON_NET_TICKETS_H

#include "common/base/lock.h"

#include <stdint.h>

/* A key makes tickets for so long, and after that opens them for as long again. */
#define TICKETS_SECONDS 3600

#define TICKETS_NAME_SIZE 16

struct ticket_key {
    unsigned char name[TICKETS_NAME_SIZE]; /* that a ticket says it by */
    unsigned char cipher[32];
    unsigned char digest[32];
};

/* In memory that all processes share. */
struct tickets {
    struct lock lock;
    struct ticket_key current, previous;
    int64_t since; /* when the current one began, by the monotonic clock; */
    bool filled;   /* if there is one */
};

bool tickets_open(struct tickets *tickets);

/* The key to make a ticket with now; false if none can be made. */
bool tickets_current(struct tickets *tickets, int64_t now, struct ticket_key *key);

enum ticket_age {
    TICKET_UNKNOWN, /* nobody can open it any more */
    TICKET_FRESH,
    TICKET_AGEING, /* a new one should take its place */
};

/* The key of that name. */
enum ticket_age tickets_find(struct tickets *tickets, const unsigned char *name, int64_t now,
                             struct ticket_key *key);

#endif
