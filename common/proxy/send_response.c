#include "common/proxy/send_response.h"

#include "common/proxy/cache_store.h"
#include "common/proxy/relay.h"

/* How long a reply is fetched for others after its client has left. */
#define FINISH_MILLISECONDS 60000

/* ---- the head ---- */

static void choose_framing(struct service_call *call, struct response_writer *writer)
{
    const struct proxy_request *proxied = call->work;
    const struct parsed_response *response = &proxied->fetch->upstream.response;

    writer->framing = response->framing;
    writer->bodiless = response->framing == FRAMING_NONE && !response->until_close;
    if (writer->bodiless || response->framing == FRAMING_LENGTH)
        return;
    if (call->request->minor >= 1 && call->context->protocol != PROTOCOL_SIMPLE) {
        writer->framing = FRAMING_CHUNKED;
        return;
    }
    writer->framing = FRAMING_NONE; /* an old client learns of the end by the end */
    call->keeps_connection = false;
}

static void write_framing(const struct parsed_response *response,
                          const struct response_writer *writer, struct buffer *lines)
{
    if (response->has_length && response->status != 204) {
        buffer_add(lines, TEXT("Content-Length: "));
        buffer_number(lines, response->content_length);
        buffer_add(lines, TEXT("\r\n"));
    } else if (writer->framing == FRAMING_CHUNKED) {
        buffer_add(lines, TEXT("Transfer-Encoding: chunked\r\n"));
    }
}

static void write_response(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    const struct parsed_response *response = &proxied->fetch->upstream.response;
    struct response_writer *writer = &proxied->fetch->writer;
    struct buffer *lines = &writer->lines;

    choose_framing(call, writer);
    relay_write_status(call, response->status, response->reason, lines);
    rewrite_fields(response->fields, lines);
    rewrite_via(response->minor, text_of(proxied->proxy->name), lines);
    cache_store_describe(call, lines);
    write_framing(response, writer, lines);
    relay_write_persistence(call, lines);
}

enum service_progress send_response_begin(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct fetch *fetch = proxied->fetch;

    response_writer_start(&fetch->writer);
    cache_store_take(call);
    if (!proxied->uploaded)
        call->keeps_connection = false; /* the rest of the request is not wanted any more */
    if (scoreboard_stopping(call->context->board))
        call->keeps_connection = false;
    write_response(call);
    if (fetch->writer.lines.overflow)
        return relay_fail(call, 502, "The head of the origin's reply is too long.");
    call->response->status = fetch->upstream.response.status;
    call->client_deadline = 0;
    return relay_go_to(proxied, STAGE_DELIVERING);
}

/* ---- the body ---- */

enum service_progress send_response_break_off(struct service_call *call)
{
    const struct proxy_request *proxied = call->work;
    const struct response_writer *writer = &proxied->fetch->writer;

    if (writer->framing == FRAMING_NONE && !writer->bodiless)
        call->client->kind->abandon(call->client);
    return SERVICE_FAILED;
}

/* The origin has broken off its reply. As long as nothing of that has gone, the client can be told.
 */
static enum service_progress lose_origin(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    if (proxied->fetch->writer.begun || call->client_gone)
        return send_response_break_off(call);
    cache_store_finish(call, false);
    return relay_fail(call, 502, "The origin has broken off its reply.");
}

/* Reads what the origin has sent, where there is room for it. */
static enum transfer collect(struct service_call *call, uint64_t *moved)
{
    struct proxy_request *proxied = call->work;
    struct fetch *fetch = proxied->fetch;
    struct response_writer *writer = &fetch->writer;
    enum transfer transfer = TRANSFER_DONE;
    struct text data;

    /* A turn does not end before all that was received is taken: nothing would tell of it. */
    while (transfer == TRANSFER_DONE && !writer->complete && writer->data.length == 0 &&
           (*moved < STEP_BYTES_LIMIT || upstream_holds(&fetch->upstream))) {
        transfer = upstream_body(&fetch->upstream, &data);
        if (transfer == TRANSFER_DONE)
            relay_renew(call);
        if (data.length > 0 && !cache_store_add(call, data))
            writer->data = data;
        *moved += data.length;
        writer->complete = fetch->upstream.whole;
        if (writer->complete)
            cache_store_finish(call, true);
    }
    return transfer;
}

static enum transfer pass_on(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum transfer transfer = response_writer_send(&proxied->fetch->writer, call);

    if (transfer == TRANSFER_DONE)
        call->client_deadline = 0;
    else if (call->client_deadline == 0)
        call->client_deadline = call->now.milliseconds + call->context->write_timeout;
    if (transfer == TRANSFER_FAILED || transfer == TRANSFER_END)
        call->client_gone = true;
    return transfer;
}

/* Waits for the origin, the client, or both: who is not waited for has nothing to do. */
static enum service_progress wait_for(struct service_call *call, enum transfer theirs,
                                      enum transfer ours)
{
    struct proxy_request *proxied = call->work;

    if (proxied->fetch->writer.complete)
        theirs = TRANSFER_END;
    return relay_wait(call, call->client_gone ? 0 : relay_wanted(ours), relay_wanted(theirs));
}

/* Once the client has left, the reply is fetched for others alone, and not for ever. */
static bool is_in_vain(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    if (proxied->finish_by == 0)
        proxied->finish_by = call->now.milliseconds + FINISH_MILLISECONDS;
    return !proxied->storing || call->now.milliseconds >= proxied->finish_by;
}

enum service_progress send_response_run(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct response_writer *writer = &proxied->fetch->writer;
    uint64_t moved = 0;

    for (;;) {
        enum transfer theirs = collect(call, &moved), ours = TRANSFER_DONE;

        if (theirs == TRANSFER_FAILED)
            return lose_origin(call);
        if (!call->client_gone)
            ours = pass_on(call);
        if (writer->ended)
            return SERVICE_DONE;
        if (call->client_gone && is_in_vain(call))
            return SERVICE_FAILED;
        if (moved >= STEP_BYTES_LIMIT && theirs == TRANSFER_DONE && !writer->complete)
            return wait_for(call, TRANSFER_READ, ours == TRANSFER_DONE ? TRANSFER_WRITE : ours);
        if (ours != TRANSFER_DONE || theirs == TRANSFER_READ || theirs == TRANSFER_WRITE)
            return wait_for(call, theirs, ours);
    }
}
