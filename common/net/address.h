/* Where a proxy connects to: names become addresses, and addresses are judged. Nothing here asks
 * the network: a name is numeric, "localhost", or stands in the hosts file. */
#ifndef COMMON_NET_ADDRESS_H
#define COMMON_NET_ADDRESS_H

#include "common/base/text.h"

#include <netinet/in.h>

#define ADDRESS_LIST_LIMIT 8

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The addresses that a name has, in the order in which they are tried. */
struct address_list {
    union address addresses[ADDRESS_LIST_LIMIT];
    int count;
};

/* Takes "host", "host:port" or "[address]:port" apart; without a port it is `port`. False if it is
 * malformed, or has no port then. The host has no brackets. */
bool address_split(struct text authority, uint16_t port, struct text *host, uint16_t *found);

/* Looks up the host; `hosts` is the text of a hosts file. False if it is not known. */
bool address_find(struct address_list *destination, struct text hosts, struct text host,
                  uint16_t port);

bool address_is_loopback(const union address *address);
/* Whether it stands for every address of this machine. */
bool address_is_any(const union address *address);
bool address_same(const union address *a, const union address *b);
uint16_t address_port(const union address *address);
socklen_t address_size(const union address *address);

#endif
