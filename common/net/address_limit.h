/* Limits how many connections a client address has at once, and how many new ones in a second.
 * All processes of a server share the counts. The limit of IPv6 is for each network of 64 bits. */
#ifndef COMMON_NET_ADDRESS_LIMIT_H
#define COMMON_NET_ADDRESS_LIMIT_H

#include "common/net/address.h"

#include <stdatomic.h>
#include <stddef.h>

struct address_limit {
    int most;           /* connections at once; 0: no limit */
    int most_loopback;  /* the same of a loopback address */
    int most_datagrams; /* and of all datagrams together */
    int rate;           /* new connections a second; 0: no limit */
    struct address_count *counts;
    uint64_t sets;
    uint64_t seed[2];
};

/* The bytes that the counts of so many connections take. */
size_t address_limit_size(uint64_t connections);
/* Prepares to count in this memory, which is zeros, aligned, and shared by all processes; the
 * members above are set. False, with errno set, without random numbers. */
bool address_limit_open(struct address_limit *limit, uint64_t connections, void *memory);

/* Counts a connection; false if its address has as many as it may have. *place is what
 * address_limit_leave() needs; 0: it is not counted. If the process dies at any point, *place is
 * enough to count the connection off; an address may then have one more for a while, never fewer.
 */
bool address_limit_enter(struct address_limit *limit, const union address *address,
                         _Atomic uint32_t *place);
void address_limit_leave(struct address_limit *limit, uint32_t place);

#endif
