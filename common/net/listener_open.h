/* Opens the listening sockets of a server. */
#ifndef COMMON_NET_LISTENER_OPEN_H
#define COMMON_NET_LISTENER_OPEN_H

#include "common/net/listener.h"

/* Returns true if the text is a numeric address of IPv4 or IPv6. */
bool listener_is_address(const char *text);

/* Listens at the addresses; by default at 127.0.0.1 and, where there is IPv6, at ::1. Port 0 takes
 * a free port, the same for all addresses. `datagrams` opens UDP sockets, too; `twins` permits
 * listener_twin(). On failure it prints the reason and returns false. */
bool listener_open(struct listener *listener, const char *const *addresses, int count,
                   uint16_t port, int backlog, bool twins, bool datagrams);
/* Takes over `count` listening sockets, whose descriptors begin at `first`, with their addresses
 * and port. On failure it prints the reason and returns false. */
bool listener_adopt(struct listener *listener, int first, int count, bool twins, bool datagrams);
/* Takes the sockets of a server before this one: `first` and those behind it. */
bool listener_inherit(struct listener *listener, int first, int streams, int datagrams,
                      bool adopted);
/* Opens a second listener at the same addresses and port (SO_REUSEPORT): the kernel chooses between
 * the two. */
bool listener_twin(struct listener *twin, const struct listener *first, int backlog);

/* Writes "SCHEME://ADDRESS:PORT/" of the first socket. */
void listener_url(const struct listener *listener, const char *scheme, char *url, int size);

#endif
