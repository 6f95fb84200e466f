#include "common/proxy/tunnel.h"

#include "common/proxy/relay.h"

#include <string.h>

#define IDLE_MILLISECONDS 120000

/* One direction. */
struct flow {
    struct transport *from, *to;
    char *space;
    size_t size;
    size_t *start, *end; /* of what was read and not yet written */
    bool *ended;         /* nothing more will be read */
    unsigned wants_from, wants_to;
    uint64_t moved; /* written in this step */
    bool broken;
};

enum service_progress tunnel_begin(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct fetch *fetch = proxied->fetch;
    struct buffer *lines = &fetch->writer.lines;

    call->keeps_connection = false;
    call->response->status = 200;
    response_writer_start(&fetch->writer);
    relay_write_status(call, 200, TEXT("Connection established"), lines);
    buffer_add(lines, TEXT("Date: "));
    date_write(lines, call->now.seconds);
    buffer_add(lines, TEXT("\r\nServer: fork-vs-thread\r\n\r\n"));
    /* What came behind the request is for the origin already; it is no longer than the input of a
     * connection. */
    buffer_add(&fetch->lines, call->received);
    call->received.data += call->received.length;
    call->received.length = 0;
    proxied->origin = call->now.milliseconds + IDLE_MILLISECONDS;
    return fetch->lines.overflow ? SERVICE_FAILED : relay_go_to(proxied, STAGE_TUNNELLING);
}

static enum transfer empty(struct flow *flow)
{
    size_t count;
    struct text rest = {flow->space + *flow->start, *flow->end - *flow->start};
    enum transfer transfer = flow->to->kind->write(flow->to, rest, false, &count);

    *flow->start += count;
    flow->moved += count;
    flow->wants_to |= relay_wanted(transfer);
    flow->broken |= transfer == TRANSFER_FAILED;
    return transfer;
}

static enum transfer fill(struct flow *flow)
{
    enum transfer transfer;

    *flow->start = *flow->end = 0;
    transfer = flow->from->kind->read(flow->from, flow->space, flow->size, flow->end);
    flow->wants_from |= relay_wanted(transfer);
    /* Also if what came was not encrypted, or badly: it is no data. */
    flow->broken |=
        transfer == TRANSFER_FAILED || transfer == TRANSFER_PLAIN || transfer == TRANSFER_REFUSED;
    if (transfer == TRANSFER_END) {
        *flow->ended = true;
        flow->to->kind->finish(flow->to);
    }
    return transfer;
}

static void pump(struct flow *flow)
{
    enum transfer transfer = TRANSFER_DONE;

    while (transfer == TRANSFER_DONE && flow->moved < STEP_BYTES_LIMIT) {
        if (*flow->start < *flow->end)
            transfer = empty(flow);
        else if (*flow->ended)
            return;
        else
            transfer = fill(flow);
    }
    if (transfer == TRANSFER_DONE)
        flow->wants_to |= POLL_PAIR_WRITE; /* the next step follows at once */
}

enum service_progress tunnel_run(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct fetch *fetch = proxied->fetch;
    struct upstream *upstream = &fetch->upstream;
    struct flow up = {
        .from = call->client,
        .to = &upstream->transport,
        .space = fetch->space,
        .size = sizeof fetch->space,
        .start = &fetch->sent,
        .end = &fetch->lines.length,
        .ended = &proxied->client_ended,
    };
    struct flow down = {
        .from = &upstream->transport,
        .to = call->client,
        .space = upstream->buffer,
        .size = sizeof upstream->buffer,
        .start = &upstream->start,
        .end = &upstream->end,
        .ended = &proxied->origin_ended,
    };
    enum transfer head = response_writer_send(&fetch->writer, call);

    if (head == TRANSFER_FAILED)
        return SERVICE_DONE;
    if (head != TRANSFER_DONE)
        return relay_wait(call, relay_wanted(head), 0);
    pump(&up);
    if (up.broken)
        return SERVICE_DONE; /* before anything goes to a client that has lost its session */
    pump(&down);
    if (call->client->session_over) {
        proxied->client_ended = true;
        up.wants_from = 0;
    }
    call->sent += down.moved;
    call->body_bytes += down.moved;
    if (up.moved > 0 || down.moved > 0)
        proxied->origin = call->now.milliseconds + IDLE_MILLISECONDS;
    if (down.broken || (up.wants_from | up.wants_to | down.wants_from | down.wants_to) == 0)
        return SERVICE_DONE;
    return relay_wait(call, up.wants_from | down.wants_to, up.wants_to | down.wants_from);
}
