#include "common/net/transport.h"

#include "common/net/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

/* Makes one answer of what a system call said, in either direction. */
static enum transfer judge(ssize_t result, enum transfer again, size_t *count)
{
    *count = result > 0 ? (size_t)result : 0;
    if (result > 0)
        return TRANSFER_DONE;
    if (result == 0)
        return TRANSFER_END;
    return errno == EAGAIN || errno == EWOULDBLOCK ? again : TRANSFER_FAILED;
}

static enum transfer plain_read(struct transport *transport, char *data, size_t size, size_t *count)
{
    ssize_t result;

    do
        result = recv(transport->socket, data, size, transport->patient ? 0 : MSG_DONTWAIT);
    while (result < 0 && errno == EINTR);
    transport->tired = transport->patient && result < 0;
    transport->patient = false;
    return judge(result, TRANSFER_READ, count);
}

static enum transfer plain_write(struct transport *transport, struct text data, bool more,
                                 size_t *count)
{
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    ssize_t result;

    do
        result = send(transport->socket, data.data, data.length, flags);
    while (result < 0 && errno == EINTR);
    return judge(result, TRANSFER_WRITE, count);
}

static enum transfer plain_send_file(struct transport *transport, int file, uint64_t offset,
                                     uint64_t length, size_t *count)
{
    /* One call is bounded, so that no connection keeps an event loop to itself. */
    size_t portion = length < (1 << 20) ? (size_t)length : 1 << 20;
    off_t from = (off_t)offset;
    ssize_t result;

    if (!transport->nonblocking)
        transport->nonblocking = fcntl(transport->socket, F_SETFL, O_NONBLOCK) == 0;
    do
        result = sendfile(transport->socket, file, &from, portion);
    while (result < 0 && errno == EINTR);
    return judge(result, TRANSFER_WRITE, count);
}

static void plain_finish(struct transport *transport)
{
    shutdown(transport->socket, SHUT_WR);
}

static uint64_t plain_unacknowledged(struct transport *transport)
{
    int bytes = 0;

    return ioctl(transport->socket, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

static void plain_abandon(struct transport *transport)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(transport->socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void plain_close(struct transport *transport)
{
    close(transport->socket);
}

bool transport_peer(const struct transport *transport, struct sockaddr_storage *peer)
{
    socklen_t length = sizeof *peer;

    if (transport->datagram == NULL)
        return getpeername(transport->socket, (struct sockaddr *)peer, &length) == 0;
    memcpy(peer, &transport->datagram->envelope.peer, sizeof transport->datagram->envelope.peer);
    return true;
}

const struct transport_kind transport_plain = {
    .read = plain_read,
    .write = plain_write,
    .send_file = plain_send_file,
    .finish = plain_finish,
    .unacknowledged = plain_unacknowledged,
    .abandon = plain_abandon,
    .close = plain_close,
};
