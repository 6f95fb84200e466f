/* Sends the body of a request to the origin, framed as the client framed it. */
#include "common/proxy/send_request_body.h"

#include "common/proxy/proxy_setup.h"

/* The client must send this much in each request timeout. */
#define MINIMUM_BYTES 16384

static void begin(struct send_request_body *body, const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;

    body_reader_begin(&body->reader, call->request->framing, call->request->content_length,
                      proxy->body_limit);
    body->deadline = call->now.milliseconds + call->context->request_timeout;
    body->begun = true;
}

static enum transfer send_piece(struct send_request_body *body, struct fetch *fetch,
                                struct service_call *call)
{
    enum transfer transfer = fetch_send_lines(fetch, call);

    while (transfer == TRANSFER_DONE && body->piece.length > 0) {
        transfer = origin_connection_send(&fetch->connection, &body->piece);
        if (transfer == TRANSFER_DONE)
            fetch_renew_deadline(fetch, call);
        if (body->piece.length == 0 && body->reader.chunked) {
            buffer_add(&fetch->lines, TEXT("\r\n"));
            transfer = fetch_send_lines(fetch, call);
        }
    }
    return transfer;
}

/* Takes the next piece off the bytes that the client has sent. */
static enum body_reader_progress take_piece(struct send_request_body *body, struct buffer *lines,
                                            struct service_call *call)
{
    enum body_reader_progress progress =
        body_reader_take(&body->reader, &call->received, &body->piece);

    body->complete = progress == BODY_READER_WHOLE;
    if (!body->reader.chunked || progress == BODY_READER_REFUSED)
        return progress;
    if (body->piece.length > 0) {
        buffer_hex(lines, body->piece.length);
        buffer_add(lines, TEXT("\r\n"));
    } else if (progress == BODY_READER_WHOLE) {
        buffer_add(lines, TEXT("0\r\n\r\n"));
    }
    return progress;
}

static enum transfer receive(struct send_request_body *body, struct service_call *call)
{
    size_t count;
    enum transfer transfer =
        call->client->kind->read(call->client, call->input_space, call->input_space_size, &count);

    call->received = (struct text){call->input_space, count};
    body->received += count;
    call->taken += count;
    if (body->received >= MINIMUM_BYTES) {
        body->received = 0;
        body->deadline = call->now.milliseconds + call->context->request_timeout;
    }
    return transfer;
}

/* Waits for the client, and for an early response of the origin. */
static enum service_progress await_client(struct send_request_body *body, struct fetch *fetch,
                                          struct service_call *call, enum transfer transfer)
{
    if (transfer != TRANSFER_READ && transfer != TRANSFER_WRITE)
        return SERVICE_FAILED; /* the client has left in the middle of its request */
    body->awaits_client = call->awaits_client = true;
    fetch->deadline = body->deadline; /* the origin gets its own again in the next step */
    return fetch_wait(fetch, call, fetch_events(transfer), POLL_PAIR_READ);
}

/* Returns true if the origin responds before it has the whole request. */
static bool responds_early(struct fetch *fetch, struct service_call *call,
                           enum service_progress *progress)
{
    enum transfer transfer = origin_connection_head(&fetch->connection, call->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return false;
    *progress = fetch_take_head(fetch, call, transfer);
    return true;
}

enum service_progress send_request_body_run(struct send_request_body *body, struct fetch *fetch,
                                            struct service_call *call)
{
    enum service_progress early;
    uint64_t moved = 0;

    if (!body->begun)
        begin(body, call);
    if (body->awaits_client)
        fetch_renew_deadline(fetch, call);
    body->awaits_client = false;
    for (;;) {
        enum transfer transfer = send_piece(body, fetch, call);

        if (transfer == TRANSFER_WRITE)
            return responds_early(fetch, call, &early)
                       ? early
                       : fetch_wait(fetch, call, 0, POLL_PAIR_READ | POLL_PAIR_WRITE);
        if (transfer != TRANSFER_DONE || body->complete) {
            fetch_renew_deadline(fetch, call);
            return stage_go_to(call, STAGE_AWAIT_HEAD);
        }
        if (take_piece(body, &fetch->lines, call) == BODY_READER_REFUSED)
            return stage_refuse(call, body->reader.status, body->reader.problem);
        if (body->piece.length > 0 || body->complete)
            continue;
        if (responds_early(fetch, call, &early))
            return early;
        transfer = receive(body, call);
        moved += call->received.length;
        if (transfer != TRANSFER_DONE)
            return await_client(body, fetch, call, transfer);
        if (moved > STEP_BYTES_LIMIT)
            return fetch_wait(fetch, call, 0, POLL_PAIR_WRITE);
    }
}

enum service_progress send_request_body_expire(const struct send_request_body *body,
                                               struct service_call *call)
{
    if (body->awaits_client)
        return stage_refuse(call, 408, "The body of the request did not come in time.");
    return stage_fail(call, 504, "The origin did not answer in time.");
}
