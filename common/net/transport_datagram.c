/* The transport of a request that came in a UDP datagram. What is written is collected and leaves
 * in one datagram at the end: until then, another response can replace it. */
#include "common/net/transport_datagram.h"

#include "common/net/datagram.h"
#include "common/net/transport_plain.h"

#include <stdio.h>
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

static enum transfer datagram_write(struct transport *transport, struct text data, uint64_t more,
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

static bool datagram_peer(struct transport *transport, union address *peer)
{
    const struct datagram *datagram = transport->own;

    *peer = datagram->envelope.peer;
    return true;
}

/* The status is 403: the server understands the request and refuses it. 413 concerns the content of
 * a request, and a 5xx would mean that the server is at fault. */
static void datagram_refuse_long(const struct transport *transport, struct response *response)
{
    uint64_t whole = response->range_count > 0 ? response->whole : response->body.length;
    bool wrong = response->status >= 400, in_parts = response->has_validators;
    char problem[240];
    int length = snprintf(problem, sizeof problem,
                          "The response does not fit into one datagram, which may have %llu bytes "
                          "here. Ask by TCP",
                          (unsigned long long)transport->response_limit);

    if (in_parts && !wrong)
        snprintf(problem + length, sizeof problem - (size_t)length,
                 ", or with Range for less: the document has %llu bytes.",
                 (unsigned long long)whole);
    else
        snprintf(problem + length, sizeof problem - (size_t)length,
                 ", or with Range for less, where there are ranges.");
    response_refuse(response, wrong ? response->status : 403, problem);
    response->in_parts = in_parts && !wrong;
    if (!wrong) /* short enough for the datagram that the shortest request is allowed */
        response->reason = TEXT("Too Long For A Datagram");
}

const struct transport_kind transport_datagram = {
    .one_request = true,
    .no_tunnel = "No tunnel can be made of datagrams.",
    .open = datagram_open,
    .read = datagram_read,
    .write = datagram_write,
    .send_file = transport_copy_file,
    .recall = datagram_recall,
    .refuse_long = datagram_refuse_long,
    .finish = datagram_finish,
    .unacknowledged = datagram_unacknowledged,
    .has_input = transport_stream_has_input,
    .abandon = datagram_abandon,
    .close = datagram_close,
    .peer = datagram_peer,
    .claims_peer = true,
};
