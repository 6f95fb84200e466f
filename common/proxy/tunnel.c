/* Moves bytes through a tunnel, until both sides have ended or nothing moves any more. */
#include "common/proxy/tunnel.h"

#include <string.h>

#define IDLE_MILLISECONDS 120000

/* One direction. */
struct flow {
    struct transport *from, *to;
    char *space;
    size_t size;
    size_t *start, *end; /* of the bytes that are read and not written */
    bool *ended;         /* there is nothing more to read */
    unsigned wants_from, wants_to;
    uint64_t moved; /* bytes written in this step */
    bool unreadable, unwritable;
};

static enum transfer empty(struct flow *flow)
{
    size_t count;
    struct text rest = {flow->space + *flow->start, *flow->end - *flow->start};
    enum transfer transfer = flow->to->kind->write(flow->to, rest, false, &count);

    *flow->start += count;
    flow->moved += count;
    flow->wants_to |= fetch_events(transfer);
    flow->unwritable |= transfer == TRANSFER_FAILED;
    return transfer;
}

static enum transfer fill(struct flow *flow)
{
    enum transfer transfer;

    *flow->start = *flow->end = 0;
    transfer = flow->from->kind->read(flow->from, flow->space, flow->size, flow->end);
    flow->wants_from |= fetch_events(transfer);
    /* Bytes that should be encrypted and are not, or are damaged, end the tunnel. */
    flow->unreadable |=
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
        flow->wants_to |= POLL_PAIR_WRITE; /* the next step comes at once */
}

/* Tells the client that the tunnel is open. Bytes that it sent behind its request are for the
 * origin; they are no more than the input of a connection holds. */
static bool open_tunnel(struct tunnel *tunnel, struct fetch *fetch, struct service_call *call)
{
    struct buffer *lines = &fetch->writer.lines;

    call->keeps_connection = false;
    call->response->status = 200;
    response_writer_start(&fetch->writer);
    fetch->writer.bodiless = true; /* what follows its head has no end that is to be marked */
    response_writer_add_status(&fetch->writer, call, 200, TEXT("Connection established"));
    buffer_add(lines, TEXT("Date: "));
    date_write(lines, call->now.seconds);
    buffer_add(lines, TEXT("\r\nServer: fork-vs-thread\r\n\r\n"));
    buffer_add(&fetch->lines, call->received);
    call->received.data += call->received.length;
    call->received.length = 0;
    fetch->deadline = call->now.milliseconds + IDLE_MILLISECONDS;
    tunnel->open = true;
    return !fetch->lines.overflow;
}

static enum service_progress move(struct tunnel *tunnel, struct fetch *fetch,
                                  struct service_call *call)
{
    struct origin_connection *connection = &fetch->connection;
    struct flow up = {
        .from = call->client,
        .to = &connection->transport,
        .space = fetch->space,
        .size = sizeof fetch->space,
        .start = &fetch->sent,
        .end = &fetch->lines.length,
        .ended = &tunnel->client_ended,
    };
    struct flow down = {
        .from = &connection->transport,
        .to = call->client,
        .space = connection->buffer,
        .size = sizeof connection->buffer,
        .start = &connection->start,
        .end = &connection->end,
        .ended = &tunnel->origin_ended,
    };

    pump(&up);
    if (up.unreadable)
        return SERVICE_DONE; /* a client that has lost its session gets nothing more */
    if (up.unwritable) {
        /* The origin takes nothing more. What it has sent before is for the client. */
        tunnel->client_ended = true;
        *up.start = *up.end = 0;
        up.wants_from = up.wants_to = 0;
    }
    pump(&down);
    if (call->client->session_over) {
        tunnel->client_ended = true;
        up.wants_from = 0;
    }
    call->awaits_client = true;
    call->taken += up.moved;
    call->sent += down.moved;
    call->body_bytes += down.moved;
    if (up.moved > 0 || down.moved > 0)
        fetch->deadline = call->now.milliseconds + IDLE_MILLISECONDS;
    if (down.unreadable || down.unwritable ||
        (up.wants_from | up.wants_to | down.wants_from | down.wants_to) == 0)
        return SERVICE_DONE;
    return fetch_wait(fetch, call, up.wants_from | down.wants_to, up.wants_to | down.wants_from);
}

enum service_progress tunnel_run(struct tunnel *tunnel, struct fetch *fetch,
                                 struct service_call *call)
{
    enum transfer head;

    if (!tunnel->open && !open_tunnel(tunnel, fetch, call))
        return SERVICE_FAILED;
    head = response_writer_send(&fetch->writer, call);
    if (head == TRANSFER_FAILED)
        return SERVICE_DONE;
    if (head != TRANSFER_DONE)
        return fetch_wait(fetch, call, fetch_events(head), 0);
    return move(tunnel, fetch, call);
}
