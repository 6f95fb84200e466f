/* The transport of a request that came in a datagram. What is written is gathered, and goes in one
 * piece at the end: until then, it can still become another reply. */
#include "common/net/datagram.h"
#include "common/net/transport.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* As much as is read of a file at once. */
#define PORTION_BYTES 16384

static enum transfer datagram_read(struct transport *transport, char *data, size_t size,
                                   size_t *count)
{
    struct datagram *datagram = transport->datagram;
    size_t rest = datagram->envelope.length - datagram->taken;

    *count = size < rest ? size : rest;
    memcpy(data, datagram->request + datagram->taken, *count);
    datagram->taken += *count;
    return rest > 0 ? TRANSFER_DONE : TRANSFER_END;
}

static enum transfer datagram_write(struct transport *transport, struct text data, bool more,
                                    size_t *count)
{
    bool added = datagram_add(transport->datagram, data);

    (void)more; /* all go together */
    *count = added ? data.length : 0;
    return added ? TRANSFER_DONE : TRANSFER_FAILED;
}

static enum transfer datagram_send_file(struct transport *transport, int file, uint64_t offset,
                                        uint64_t length, size_t *count)
{
    char data[PORTION_BYTES];
    size_t portion = length < sizeof data ? (size_t)length : sizeof data;
    ssize_t result;

    *count = 0;
    do
        result = pread(file, data, portion, (off_t)offset);
    while (result < 0 && errno == EINTR);
    if (result <= 0)
        return result == 0 ? TRANSFER_END : TRANSFER_FAILED;
    return datagram_write(transport, (struct text){data, (size_t)result}, false, count);
}

static void datagram_finish(struct transport *transport)
{
    datagram_send(transport->datagram);
}

static uint64_t datagram_unacknowledged(struct transport *transport)
{
    (void)transport;
    return 0;
}

static void datagram_abandon(struct transport *transport)
{
    transport->datagram->sent = true;
}

static void datagram_close(struct transport *transport)
{
    datagram_free(transport->datagram);
    transport->datagram = NULL;
    close(transport->socket);
}

const struct transport_kind transport_datagram = {
    .read = datagram_read,
    .write = datagram_write,
    .send_file = datagram_send_file,
    .finish = datagram_finish,
    .unacknowledged = datagram_unacknowledged,
    .abandon = datagram_abandon,
    .close = datagram_close,
};
