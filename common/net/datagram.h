/* UDP datagrams: one holds a request, another one the response. The process that receives a
 * datagram writes it into a pipe (a file in memory, if the pipe is too small), and the read end is
 * served like a connection: it can be passed to a child, a thread or another process. The one that
 * serves it reads the datagram from there, and sends the response from the address that the
 * datagram was sent to. */
#ifndef COMMON_NET_DATAGRAM_H
#define COMMON_NET_DATAGRAM_H

#include "common/base/text.h"
#include "common/net/address.h"

/* The most bytes of a request: with its envelope it fits into a pipe. */
#define DATAGRAM_REQUEST_LIMIT 65000
/* The most bytes of a response: UDP over IPv4 carries no more. */
#define DATAGRAM_RESPONSE_LIMIT 65507
/* A source address may be forged: a response to another machine is at most this many times as long
 * as the request. */
#define DATAGRAM_AMPLIFICATION 3

/* The addresses of a datagram. */
struct envelope {
    int socket; /* of UDP; it lives as long as the server */
    union address peer;
    union {
        struct in_addr v4;
        struct in6_addr v6;
    } local;
    unsigned interface; /* of a link-local address; or 0 */
    bool located;       /* `local` is known */
    size_t length;      /* bytes of the request */
};

struct datagram {
    struct envelope envelope;
    size_t taken; /* bytes of the request that were read */
    bool sent;    /* nothing more will be sent */
    struct buffer response;
    char request[];
};

/* Receives the next datagram of a UDP socket, and returns a descriptor to serve; -1 with errno. */
int datagram_receive(int socket);

/* Returns true if the descriptor holds a datagram, false for a TCP connection. */
bool datagram_is(int descriptor);
/* Reads the datagram; NULL if bytes are missing or there is no memory. */
struct datagram *datagram_take(int descriptor);
void datagram_free(struct datagram *datagram);

/* Returns the most bytes of the response to a request of that length. */
size_t datagram_room(const union address *peer, size_t request);

/* Appends to the response; false if there is no memory. */
bool datagram_add(struct datagram *datagram, struct text data);
/* Sends the response once, without waiting. */
void datagram_send(struct datagram *datagram);

#endif
