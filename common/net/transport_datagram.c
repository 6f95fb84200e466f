/* The transport of a request that came in a UDP datagram. What is written is collected and leaves
 * in one datagram at the end: until then, another response can replace it. */
#include "common/net/transport_datagram.h"

#include "common/net/datagram.h"
#include "common/net/transport_plain.h"

#include <string.h>
#include <unistd.h>

static bool datagram_open(struct transport *transport, struct text *request)
{
    struct datagram *datagram;

    if (!datagram_is(transport->socket)) {
        transport->kind = &transport_plain;
        return transport_plain.open(transport, request);
    }
    datagram = datagram_take(transport->socket);
    transport->own = datagram;
    if (datagram == NULL)
        return false;
    transport->response_limit = datagram_room(&datagram->envelope.peer, datagram->envelope.length);
    *request = (struct text){datagram->request, datagram->envelope.length};
    return true;
}

static enum transfer datagram_read(struct transport *transport, char *data, size_t size,
                                   size_t *count)
{
    struct datagram *datagram = transport->own;
    size_t rest = datagram->envelope.length - datagram->taken;

    *count = size < rest ? size : rest;
    memcpy(data, datagram->request + datagram->taken, *count);
    datagram->taken += *count;
    return rest > 0 ? TRANSFER_DONE : TRANSFER_END;
}

static enum transfer datagram_write(struct transport *transport, struct text data, bool more,
                                    size_t *count)
{
    struct datagram *datagram = transport->own;
    bool added;

    (void)more; /* all bytes leave together */
    transport->overflowed |= data.length > transport->response_limit - datagram->response.length;
    added = !transport->overflowed && datagram_add(datagram, data);
    *count = added ? data.length : 0;
    return added ? TRANSFER_DONE : TRANSFER_FAILED;
}

static bool datagram_recall(struct transport *transport, uint64_t *count)
{
    struct datagram *datagram = transport->own;

    *count = datagram->response.length;
    datagram->response.length = 0;
    transport->overflowed = false;
    return true;
}

static void datagram_finish(struct transport *transport)
{
    if (!transport->overflowed)
        datagram_send(transport->own);
}

static uint64_t datagram_unacknowledged(struct transport *transport)
{
    (void)transport;
    return 0;
}

static void datagram_abandon(struct transport *transport)
{
    struct datagram *datagram = transport->own;

    datagram->sent = true;
}

static void datagram_close(struct transport *transport)
{
    datagram_free(transport->own);
    transport->own = NULL;
    close(transport->socket);
}

static bool datagram_peer(const struct transport *transport, union address *peer)
{
    const struct datagram *datagram = transport->own;

    *peer = datagram->envelope.peer;
    return true;
}

const struct transport_kind transport_datagram = {
    .one_request = true,
    .open = datagram_open,
    .read = datagram_read,
    .write = datagram_write,
    .send_file = transport_copy_file,
    .recall = datagram_recall,
    .finish = datagram_finish,
    .unacknowledged = datagram_unacknowledged,
    .abandon = datagram_abandon,
    .close = datagram_close,
    .peer = datagram_peer,
};
