#include "common/proxy/send_body.h"

#include "common/proxy/fetch.h"
#include "common/proxy/relay.h"

/* A client that uploads goes on as long as it sends this much in each request timeout. */
#define UPLOAD_BYTES 16384

/* Sends the piece that is at hand, framed as the client's was. */
static enum transfer send_piece(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum transfer transfer = fetch_send_lines(call);

    while (transfer == TRANSFER_DONE && proxied->piece.length > 0) {
        transfer = upstream_send(&proxied->fetch->upstream, &proxied->piece);
        if (transfer == TRANSFER_DONE)
            relay_renew(call);
        if (proxied->piece.length == 0 && proxied->body_reader.chunked) {
            buffer_add(&proxied->fetch->lines, TEXT("\r\n"));
            transfer = fetch_send_lines(call);
        }
    }
    return transfer;
}

/* Takes the next piece off what the client has sent. */
static enum body_reader_progress take_piece(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct buffer *lines = &proxied->fetch->lines;
    enum body_reader_progress progress =
        body_reader_take(&proxied->body_reader, &call->received, &proxied->piece);

    proxied->uploaded = progress == BODY_READER_WHOLE;
    if (!proxied->body_reader.chunked || progress == BODY_READER_REFUSED)
        return progress;
    if (proxied->piece.length > 0) {
        buffer_hex(lines, proxied->piece.length);
        buffer_add(lines, TEXT("\r\n"));
    } else if (progress == BODY_READER_WHOLE) {
        buffer_add(lines, TEXT("0\r\n\r\n"));
    }
    return progress;
}

static enum transfer receive(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    size_t count;
    enum transfer transfer =
        call->client->kind->read(call->client, call->input_space, call->input_space_size, &count);

    call->received = (struct text){call->input_space, count};
    proxied->upload_moved += count;
    if (proxied->upload_moved >= UPLOAD_BYTES) {
        proxied->upload_moved = 0;
        proxied->upload_until = call->now.milliseconds + call->context->request_timeout;
    }
    return transfer;
}

/* Nothing more comes from the client now. The origin may have something to say before that. */
static enum service_progress await_client(struct service_call *call, enum transfer transfer)
{
    struct proxy_request *proxied = call->work;

    if (transfer != TRANSFER_READ && transfer != TRANSFER_WRITE)
        return SERVICE_FAILED; /* it has left in the middle of its request */
    proxied->client_slow = true;
    proxied->origin = proxied->upload_until; /* the origin has its time again when it is sent to */
    return relay_wait(call, relay_wanted(transfer), POLL_PAIR_READ);
}

/* Whether the origin has begun to answer before it has the whole request. */
static bool answers_early(struct service_call *call, enum service_progress *progress)
{
    struct proxy_request *proxied = call->work;
    enum transfer transfer = upstream_head(&proxied->fetch->upstream, call->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return false;
    *progress = fetch_take_head(call, transfer);
    return true;
}

enum service_progress send_body_run(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum service_progress early;
    uint64_t moved = 0;

    if (proxied->client_slow)
        relay_renew(call);
    proxied->client_slow = false;
    for (;;) {
        enum transfer transfer = send_piece(call);

        if (transfer == TRANSFER_WRITE)
            return answers_early(call, &early)
                       ? early
                       : relay_wait(call, 0, POLL_PAIR_READ | POLL_PAIR_WRITE);
        if (transfer != TRANSFER_DONE || proxied->uploaded) {
            relay_renew(call);
            return relay_go_to(proxied, STAGE_AWAITING);
        }
        if (take_piece(call) == BODY_READER_REFUSED)
            return relay_refuse(call, proxied->body_reader.status, proxied->body_reader.problem);
        if (proxied->piece.length > 0 || proxied->uploaded)
            continue;
        if (answers_early(call, &early))
            return early;
        transfer = receive(call);
        moved += call->received.length;
        if (transfer != TRANSFER_DONE)
            return await_client(call, transfer);
        if (moved > STEP_BYTES_LIMIT)
            return relay_wait(call, 0, POLL_PAIR_WRITE);
    }
}
