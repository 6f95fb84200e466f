/* IPv4 and IPv6 addresses. Nothing here asks the network: a host is numeric, "localhost", or a name
 * in the hosts file. */
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

/* The family of the address that stands for the senders of all datagrams: their own addresses may
 * be forged. */
#define ADDRESS_OF_DATAGRAMS AF_MAX

/* The addresses of a host, in the order in which they are tried. */
struct address_list {
    union address addresses[ADDRESS_LIST_LIMIT];
    int count;
};

/* Splits "host", "host:port" or "[address]:port"; `port` is the default. The host has no brackets.
 * False if the authority is malformed, or has no port and `port` is 0. */
bool address_split(struct text authority, uint16_t port, struct text *host, uint16_t *found);

/* Reads a numeric address, without brackets; false if it is none. */
bool address_read(struct text text, uint16_t port, union address *address);
/* Makes an address of the 4 or 16 bytes of a message; an IPv4 address in IPv6 becomes IPv4. */
void address_make(union address *address, const unsigned char *bytes, size_t size, uint16_t port);
/* Writes the address without its port; INET6_ADDRSTRLEN bytes are enough. */
void address_write(const union address *address, char *text, socklen_t size);

/* Looks up the host; `hosts` is the text of a hosts file. False if the host is unknown. */
bool address_find(struct address_list *list, struct text hosts, struct text host, uint16_t port);

bool address_is_loopback(const union address *address);
/* Returns true for 0.0.0.0 and ::, which stand for every address of this machine. */
bool address_is_any(const union address *address);
/* How far packets to an address go. */
enum address_scope {
    ADDRESS_PUBLIC,
    ADDRESS_PRIVATE, /* in this network */
    ADDRESS_LOCAL,   /* on this machine or its link, or to many */
};
enum address_scope address_scope(const union address *address);
bool address_same(const union address *a, const union address *b);
uint16_t address_port(const union address *address);
socklen_t address_size(const union address *address);

#endif
