/* How bytes travel: the connection knows these verbs, and not whether they are plain, encrypted, or
 * in a datagram. */
#ifndef COMMON_NET_TRANSPORT_H
#define COMMON_NET_TRANSPORT_H

#include "common/base/text.h"

#include <sys/socket.h>
#include <sys/types.h>

enum transfer {
    TRANSFER_DONE,  /* some bytes went: at least one */
    TRANSFER_END,   /* reading: the peer sends no more; sending a file: it ends early */
    TRANSFER_READ,  /* nothing went: try again when the socket can be read */
    TRANSFER_WRITE, /* nothing went: try again when it can be written */
    TRANSFER_FAILED,
    TRANSFER_PLAIN,   /* reading: the peer does not encrypt; from now on the transport is plain */
    TRANSFER_REFUSED, /* reading: it does so badly, and was told; likewise */
};

struct tls;
struct session;
struct datagram;

struct transport {
    const struct transport_kind *kind;
    int socket;
    bool patient;              /* the next read may wait for a moment: one call instead of three */
    bool tired;                /* it did, in vain */
    bool holds;                /* the last read has left something that the socket knows no more */
    bool nonblocking;          /* the socket was made so, for calls that cannot be told */
    struct tls *tls;           /* of those that encrypt; or NULL */
    struct session *session;   /* once it has begun */
    struct datagram *datagram; /* that holds the request, and will the reply; or NULL */
};

struct transport_kind {
    enum transfer (*read)(struct transport *, char *data, size_t size, size_t *count);
    /* `more` announces that further bytes follow at once. */
    enum transfer (*write)(struct transport *, struct text data, bool more, size_t *count);
    enum transfer (*send_file)(struct transport *, int file, uint64_t offset, uint64_t length,
                               size_t *count);
    /* Says that nothing more will be sent. */
    void (*finish)(struct transport *);
    /* How many of the bytes written the peer has not confirmed. */
    uint64_t (*unacknowledged)(struct transport *);
    /* Has the close that follows drop those. */
    void (*abandon)(struct transport *);
    void (*close)(struct transport *);
};

extern const struct transport_kind transport_plain;
extern const struct transport_kind transport_tls;
extern const struct transport_kind transport_datagram;

/* Who is at the other end; false if nobody is any more. */
bool transport_peer(const struct transport *transport, struct sockaddr_storage *peer);

/* How sessions of OpenSSL reach the socket of a transport that encrypts; NULL: no memory. */
struct bio_method_st *transport_tls_wire(void);

#endif
