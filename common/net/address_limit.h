/* Limits how many connections a client address has at once, and how many new ones in a second.
 * All processes of a server share the counts. The limit of IPv6 is for each network of 64 bits. */
#ifndef COMMON_NET_ADDRESS_LIMIT_H
#define COMMON_NET_ADDRESS_LIMIT_H

#include "common/net/address.h"

#include <stdatomic.h>

struct address_limit {
    struct address_count *counts;
    uint64_t sets;
    uint64_t seed[2];
    int most;          /* connections at once */
    int most_loopback; /* the same of a loopback address */
    int rate;          /* new connections a second; 0: no limit */
};

/* Prepares to count the addresses of so many connections; the other members are set. False, with
 * errno set, if there is no memory. */
bool address_limit_open(struct address_limit *limit, uint64_t connections);

/* Counts a connection; false if its address has as many as it may have. *place is what
 * address_limit_leave() needs; 0: it is not counted. If the process dies at any point, *place is
 * enough to count the connection off; an address may then have one more for a while, never fewer.
 */
bool address_limit_enter(struct address_limit *limit, const union address *address,
                         _Atomic uint32_t *place);
void address_limit_leave(struct address_limit *limit, uint32_t place);

#endif
