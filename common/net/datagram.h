/* HTTP by UDP: a datagram holds one request, and another one the reply. To a model it is a
 * connection like any other: whoever receives it puts it into a pipe, whose end is that
 * connection's descriptor; whoever serves that takes it out, and has the reply sent back from where
 * the datagram arrived. What becomes of such a descriptor is the kernel's to know: it goes to
 * children, threads and other processes as a socket does. */
#ifndef COMMON_NET_DATAGRAM_H
#define COMMON_NET_DATAGRAM_H

#include "common/base/text.h"
#include "common/net/address.h"

/* Of a request: with what is said of it, it fits into a pipe. */
#define DATAGRAM_REQUEST_LIMIT 65000
/* Of a reply: the most that UDP can carry in IPv4. */
#define DATAGRAM_RESPONSE_LIMIT 65507
/* To another machine, of which it is only said that it has asked: so many times the request. */
#define DATAGRAM_AMPLIFICATION 3

/* Where one came from, and where it arrived. */
struct envelope {
    int socket; /* of UDP: it lasts as long as the server */
    union address peer;
    union {
        struct in_addr v4;
        struct in6_addr v6;
    } local;
    unsigned interface; /* where the local address means nothing without; or 0 */
    bool located;       /* the local address is known */
    size_t length;      /* of the request */
};

struct datagram {
    struct envelope envelope;
    size_t taken; /* bytes of the request that were read */
    bool sent;    /* nothing more will be sent */
    struct buffer response;
    char request[];
};

/* The next datagram of a socket of UDP, as a descriptor to be served; -1 with errno. */
int datagram_receive(int socket);

/* Whether the descriptor is of a datagram, not of a TCP connection. */
bool datagram_is(int descriptor);
/* Takes it out; NULL if it is damaged or there is no memory. */
struct datagram *datagram_take(int descriptor);
void datagram_free(struct datagram *datagram);

/* How long the reply to a request of that length may be. */
size_t datagram_room(const union address *peer, size_t request);

/* Appends to the response; false if there is no memory. */
bool datagram_add(struct datagram *datagram, struct text data);
/* Sends the reply, once: where the network takes it now. */
void datagram_send(struct datagram *datagram);

#endif
