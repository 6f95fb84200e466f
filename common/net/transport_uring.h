/* The transport of plain TCP by a ring: what is read was received by the ring before, and what is
 * written is sent by the ring later. */
#ifndef COMMON_NET_TRANSPORT_URING_H
#define COMMON_NET_TRANSPORT_URING_H

#include "common/base/uring.h"
#include "common/net/transport.h"

/* The operation that a completion is of: the low bits of its user data. The other bits are the
 * address of the stream, or the number of the source. */
enum uring_operation { URING_OF_SOURCE, URING_OF_RECEIVE, URING_OF_SEND, URING_OF_POLL };
#define URING_OPERATION_MASK 3

/* The operations of one connection. The struct must stay where it is while one of them is in
 * flight, even if the connection has ended. The bytes that are sent need not: nothing reads them
 * after the transport has been closed. */
struct uring_stream {
    struct uring *ring;
    unsigned position;  /* of its last entry in the ring */
    unsigned in_flight; /* operations whose completion has not come */
    bool is_open;       /* the stream is received and sent by the ring */
    bool unfit;         /* its socket does not let the ring wait for input */
    bool receiving, sending;
    bool has_received, has_sent; /* a result that nobody has taken */
    bool more;                   /* the kernel has more input */
    bool direct;                 /* the next read asks the kernel itself */
    int received, sent;          /* the results: bytes, or a negative error */
    unsigned buffer;             /* has the bytes that were received */
    int taken;                   /* so many of them have been read */
};

/* Gives a plain transport to the ring. */
void transport_uring_begin(struct transport *transport, struct uring_stream *stream,
                           struct uring *ring);
/* Receives into a buffer of the ring. False if there is no memory. */
bool transport_uring_receive(struct uring_stream *stream, int socket);
/* Has an operation end at once. */
void transport_uring_cancel(struct uring_stream *stream, enum uring_operation operation);
/* Notes a completion. After the transport has been closed, the result is dropped. */
void transport_uring_note(struct uring_stream *stream, const struct io_uring_cqe *completion,
                          bool closed);

extern const struct transport_kind transport_uring;

#endif
