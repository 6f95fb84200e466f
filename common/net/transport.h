/* The interface between a connection and what carries its bytes: TCP, by calls or a ring, TLS or a
 * datagram. */
#ifndef COMMON_NET_TRANSPORT_H
#define COMMON_NET_TRANSPORT_H

#include "common/http/response.h"
#include "common/net/address.h"

enum transfer {
    TRANSFER_DONE,   /* at least one byte was moved */
    TRANSFER_END,    /* reading: the peer sends no more; sending a file: it ends early */
    TRANSFER_READ,   /* nothing was moved: try again when the socket is readable */
    TRANSFER_WRITE,  /* nothing was moved: try again when the socket is writable */
    TRANSFER_QUEUED, /* writing: these bytes will be sent. They must stay where they are; write them
                        again when the result is there */
    TRANSFER_FAILED,
    TRANSFER_PLAIN,   /* reading: the peer did not encrypt; the transport is plain from now on */
    TRANSFER_REFUSED, /* reading: the peer broke TLS and was told; the transport is plain from now
                         on */
};

struct transport {
    const struct transport_kind *kind;
    int socket;
    bool patient;      /* the next read may block briefly, which saves a poll and a second read */
    bool timed_out;    /* that read blocked, and nothing came, or a signal interrupted it */
    bool pending;      /* the last read left input that polling the socket does not report */
    bool nonblocking;  /* the socket has O_NONBLOCK, for calls that take no flag */
    bool session_over; /* the encrypted session has ended: further bytes are no data */
    bool overflowed;   /* more was written than `response_limit` */
    bool was_full;     /* a write found no room in the socket */
    int rooms_made;    /* in a crowd: how often a write found room after that */
    bool rests;        /* after the next write there is nothing to do until the peer sends more */
    bool in_crowd;     /* there are many clients, and this one has not made room often enough */
    uint64_t response_limit; /* the most bytes that a response may have */
    void *shared;            /* state that all transports of this kind share; or NULL */
    void *own;               /* state of this one; or NULL */
    union address known;     /* the peer of a stream, once it was asked for; it does not change */
};

struct transport_kind {
    /* The transport carries one request and its response, not a stream of them. */
    bool one_request;
    /* The bytes of the socket are those of the stream: a ring may receive and send them. */
    bool fits_ring;
    /* Says why a CONNECT is refused; NULL if the transport can carry a tunnel. */
    const char *no_tunnel;
    /* Prepares a transport whose `kind`, `socket` and `shared` are set; it may change the kind.
     * With `one_request`, *request is then all that was received. False if there is nothing to
     * serve; the transport must be closed all the same. */
    bool (*open)(struct transport *, struct text *request);
    enum transfer (*read)(struct transport *, char *data, size_t size, size_t *count);
    /* So many `more` bytes follow at once; 1 may also be the end of the connection. */
    enum transfer (*write)(struct transport *, struct text data, uint64_t more, size_t *count);
    enum transfer (*send_file)(struct transport *, int file, uint64_t offset, uint64_t length,
                               size_t *count);
    /* Drops all `*count` bytes written so far. False if some of them may have left. */
    bool (*recall)(struct transport *, uint64_t *count);
    /* Turns a response longer than `response_limit` into an error that says so; an error keeps its
     * status. NULL if there is no limit. */
    void (*refuse_long)(const struct transport *, struct response *);
    /* Announces that nothing more will be written. */
    void (*finish)(struct transport *);
    /* Returns how many bytes the peer has not acknowledged. */
    uint64_t (*unacknowledged)(struct transport *);
    /* Returns true if bytes have come that were not read yet. */
    bool (*has_input)(const struct transport *);
    /* Makes the close that follows drop the bytes that are not acknowledged. */
    void (*abandon)(struct transport *);
    /* Called before memory that was given to write() is freed. NULL: nothing reads it any more. */
    void (*settle)(struct transport *);
    void (*close)(struct transport *);
    /* Finds the address of the peer; false if it has none any more. */
    bool (*peer)(struct transport *, union address *peer);
    /* Anybody may have written that address, as into a datagram. */
    bool claims_peer;
};

/* Finds the address of the peer; false if it has none, or only claims it. The kernel takes loopback
 * addresses from this machine alone. */
bool transport_proven_peer(struct transport *transport, union address *peer);

/* The functions open, recall, has_input and peer of every kind that carries a stream. */
bool transport_open_stream(struct transport *transport, struct text *request);
bool transport_recall_stream(struct transport *transport, uint64_t *count);
bool transport_stream_has_input(const struct transport *transport);
bool transport_peer_of_stream(struct transport *transport, union address *peer);
/* After a call with `open`, closing the socket resets the connection, also where the kernel closes
 * it because this process dies: a regular end would tell the client that the response is whole. */
void transport_mark_open_end(const struct transport *transport, bool open);
/* Returns true if the client has yet to take bytes that were written, and has not left. */
bool transport_is_taking(struct transport *transport);
/* The kernel takes no more of a response than this beyond what the client can receive now. With a
 * quarter of it, a document of 1 MiB takes six calls instead of one. */
#define TRANSPORT_UNSENT_BYTES (1024 * 1024)
/* Tells the transport that there are many clients. Until this one has made room several times, the
 * kernel takes less for it: many clients that do not read would exhaust its memory. */
void transport_expect_crowd(struct transport *transport);
/* Returns true if the client seems to read: it made room twice, or there is no crowd. */
bool transport_has_reader(const struct transport *transport);
/* Each write to the socket of a stream says whether there was room. */
void transport_note_room(struct transport *transport, bool room);

/* Returns true if a transfer that failed with this error may succeed later. */
bool transport_may_retry(int error);

/* Sends a piece of the file through memory: for kinds that sendfile() cannot serve. */
enum transfer transport_copy_file(struct transport *transport, int file, uint64_t offset,
                                  uint64_t length, size_t *count);

#endif
