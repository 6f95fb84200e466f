/* The transport of plain TCP: the calls of the kernel. */
#include "common/net/transport_plain.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

/* Translates the result of a system call; `again` is for one that would block. */
static enum transfer judge(ssize_t result, enum transfer again, size_t *count)
{
    *count = result > 0 ? (size_t)result : 0;
    if (result > 0)
        return TRANSFER_DONE;
    if (result == 0)
        return TRANSFER_END;
    return transport_may_retry(errno) ? again : TRANSFER_FAILED;
}

static enum transfer plain_read(struct transport *transport, char *data, size_t size, size_t *count)
{
    ssize_t result = recv(transport->socket, data, size, transport->patient ? 0 : MSG_DONTWAIT);

    transport->timed_out = transport->patient && result < 0;
    transport->patient = false;
    return judge(result, TRANSFER_READ, count);
}

/* The head of a response shares a packet with the first bytes of its body, which saves a packet (4
 * us), unless more than so many bytes follow. These may fill the window of a client on this machine
 * at once, and the rest then waits for a timer of the kernel (with BBR, 100 kB take 38 us of CPU).
 * A head that comes first has the client read, and make room (29 us). */
#define JOINED_BYTES 96000

static enum transfer plain_write(struct transport *transport, struct text data, uint64_t more,
                                 size_t *count)
{
    bool joined = more > 0 && more <= JOINED_BYTES;
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (joined ? MSG_MORE : 0);
    ssize_t result;

    do
        result = send(transport->socket, data.data, data.length, flags);
    while (result < 0 && errno == EINTR);
    transport_note_room(transport, result >= 0);
    return judge(result, TRANSFER_WRITE, count);
}

static enum transfer plain_send_file(struct transport *transport, int file, uint64_t offset,
                                     uint64_t length, size_t *count)
{
    /* The bound keeps one connection from holding up an event loop. */
    size_t portion = length < (1 << 20) ? (size_t)length : 1 << 20;
    int on = 1;
    off_t from = (off_t)offset;
    ssize_t result;

    if (!transport->nonblocking)
        transport->nonblocking = ioctl(transport->socket, FIONBIO, &on) == 0;
    do
        result = sendfile(transport->socket, file, &from, portion);
    while (result < 0 && errno == EINTR);
    transport_note_room(transport, result >= 0);
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

const struct transport_kind transport_plain = {
    .fits_ring = true,
    .open = transport_open_stream,
    .read = plain_read,
    .write = plain_write,
    .send_file = plain_send_file,
    .recall = transport_recall_stream,
    .finish = plain_finish,
    .unacknowledged = plain_unacknowledged,
    .has_input = transport_stream_has_input,
    .abandon = plain_abandon,
    .close = plain_close,
    .peer = transport_peer_of_stream,
};
