/* Functions that several kinds of transport share. */
#include "common/net/transport.h"

#include "common/net/address.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* One record of TLS holds as much. */
#define COPY_BYTES 16384
/* TRANSPORT_UNSENT_BYTES in a crowd, for a client that has not shown that it reads. */
#define UNSENT_BYTES_CROWD (32 * 1024)
/* The kernel of a client that does not read makes room, too, while its window grows: hardly ever
 * READER_ROOMS times. After SURE_READER_ROOMS times it is certain that the client reads. */
#define READER_ROOMS      2
#define SURE_READER_ROOMS 4

bool transport_open_stream(struct transport *transport, struct text *request)
{
    (void)request;
    transport->response_limit = UINT64_MAX;
    return true;
}

bool transport_recall_stream(struct transport *transport, uint64_t *count)
{
    (void)transport;
    *count = 0;
    return false;
}

bool transport_stream_has_input(const struct transport *transport)
{
    char byte;

    return recv(transport->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

bool transport_peer_of_stream(struct transport *transport, union address *peer)
{
    socklen_t length = sizeof *peer;

    if (transport->known.any.sa_family == AF_UNSPEC &&
        getpeername(transport->socket, &transport->known.any, &length) < 0)
        return false;
    *peer = transport->known;
    return true;
}

bool transport_proven_peer(struct transport *transport, union address *peer)
{
    return transport->kind->peer(transport, peer) &&
           (!transport->kind->claims_peer || address_is_loopback(peer));
}

void transport_mark_open_end(const struct transport *transport, bool open)
{
    const struct linger linger = {.l_onoff = open, .l_linger = 0};

    if (!transport->kind->one_request)
        setsockopt(transport->socket, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

bool transport_is_taking(struct transport *transport)
{
    return transport->kind->unacknowledged(transport) > 0 &&
           send(transport->socket, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) == 0;
}

bool transport_may_retry(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static void limit_unsent(const struct transport *transport, int bytes)
{
    setsockopt(transport->socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

void transport_expect_crowd(struct transport *transport)
{
    transport->in_crowd = true;
    limit_unsent(transport, UNSENT_BYTES_CROWD);
}

bool transport_has_reader(const struct transport *transport)
{
    return !transport->in_crowd || transport->rooms_made >= READER_ROOMS;
}

void transport_note_room(struct transport *transport, bool room)
{
    if (!room)
        transport->was_full = true;
    if (!room || !transport->was_full || !transport->in_crowd)
        return;
    transport->was_full = false;
    if (++transport->rooms_made < SURE_READER_ROOMS)
        return;
    transport->in_crowd = false;
    limit_unsent(transport, TRANSPORT_UNSENT_BYTES);
}

enum transfer transport_copy_file(struct transport *transport, int file, uint64_t offset,
                                  uint64_t length, size_t *count)
{
    char data[COPY_BYTES];
    size_t portion = length < sizeof data ? (size_t)length : sizeof data;
    ssize_t result;

    *count = 0;
    do
        result = pread(file, data, portion, (off_t)offset);
    while (result < 0 && errno == EINTR);
    if (result <= 0)
        return result == 0 ? TRANSFER_END : TRANSFER_FAILED;
    return transport->kind->write(transport, (struct text){data, (size_t)result}, 0, count);
}
