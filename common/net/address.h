/* Where a proxy connects to: names become addresses, and addresses are judged. Nothing here asks
 * the network: a name is numeric, "localhost", or stands in the hosts file. */
#ifndef COMMON_NET_ADDRESS_H
#define COMMON_NET_ADDRESS_H

#include "common/base/text.h"

#include <netinet/in.h>

#define DESTINATION_LIMIT 8

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The addresses that a name has, in the order in which they are tried. */
struct destination {
    union address addresses[DESTINATION_LIMIT];
    int count;
};

/* Takes "host", "host:port" or "[address]:port" apart; without a port it is `port`. False if it is
 * malformed, or has no port then. The host has no brackets. */
bool destination_split(struct text authority, uint16_t port, struct text *host, uint16_t *found);

/* Looks up the host; `hosts` is the text of a hosts file. False if it is not known. */
bool destination_find(struct destination *destination, struct text hosts, struct text host,
                      uint16_t port);

bool destination_is_loopback(const union address *address);
/* Whether it stands for every address of this machine. */
bool destination_is_any(const union address *address);
bool destination_same(const union address *a, const union address *b);
uint16_t destination_port(const union address *address);
socklen_t destination_size(const union address *address);

#endif
