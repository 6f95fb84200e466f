/* Sends the origin's response to the client, and goes on for the cache if the client leaves. */
#include "common/proxy/send_response.h"

#include "common/proxy/cache_counters.h"
#include "common/proxy/proxy_setup.h"
#include "common/proxy/rewrite.h"

#include <string.h>

/* How long a response is received for the cache after the client has left. */
#define FINISH_MILLISECONDS 60000
/* How often to look whether a client has taken all bytes before the connection is reset. */
#define RESET_LOOK_MILLISECONDS 20
/* The end of Cache-Status for a response that is stored. */
#define CLAIM TEXT("; stored\r\n")

/* ---- the head ---- */

static void choose_framing(struct response_writer *writer, const struct parsed_response *response,
                           struct service_call *call)
{
    writer->framing = response->framing;
    writer->bodiless = response->framing == FRAMING_NONE && !response->until_close;
    if (writer->bodiless || response->framing == FRAMING_LENGTH)
        return;
    if (call->request->minor >= 1 && call->context->protocol != PROTOCOL_SIMPLE) {
        writer->framing = FRAMING_CHUNKED;
        return;
    }
    writer->framing = FRAMING_NONE; /* for HTTP/1.0, the body ends with the connection */
    call->keeps_connection = false;
}

static void write_framing(const struct parsed_response *response, uint64_t length,
                          const struct response_writer *writer, struct buffer *lines)
{
    if (response->has_length && response->status != 204) {
        buffer_add(lines, TEXT("Content-Length: "));
        buffer_number(lines, length);
        buffer_add(lines, TEXT("\r\n"));
    } else if (writer->framing == FRAMING_CHUNKED) {
        buffer_add(lines, TEXT("Transfer-Encoding: chunked\r\n"));
    }
}

/* Takes back that the response is stored, if the head leaves before it is. */
static void correct_claim(const struct cache_store *store, struct response_writer *writer)
{
    struct buffer *lines = &writer->lines;
    const size_t word = CLAIM.length - 2; /* without the end of the line */

    if (writer->claim > 0 && !store->stored) {
        memmove(lines->data + writer->claim, lines->data + writer->claim + word,
                lines->length - writer->claim - word);
        lines->length -= word;
    }
    writer->claim = 0;
}

/* Writes the fields, and returns the length of the body. If the origin sends the rest of a range,
 * Content-Range and the length become those of the whole range. */
static uint64_t write_fields(const struct cache_lookup *lookup,
                             const struct parsed_response *response, struct buffer *lines)
{
    const struct cache_span span = {lookup->wanted, lookup->part.span.whole};

    if (!cache_lookup_wants_rest(lookup)) {
        rewrite_fields(response->fields, (struct text){0}, lines);
        return response->content_length;
    }
    rewrite_fields(response->fields, CACHE_PART_FIELD, lines);
    cache_part_write_span(&span, lines);
    return span.range.end - span.range.first;
}

static void write_head(const struct cache_store *store, struct fetch *fetch,
                       struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    const struct parsed_response *response = &fetch->connection.response;
    struct response_writer *writer = &fetch->writer;
    uint64_t length;

    choose_framing(writer, response, call);
    response_writer_add_status(writer, call, response->status, response->reason);
    length = write_fields(store->lookup, response, &writer->lines);
    rewrite_via(response->minor, text_of(proxy->name), &writer->lines);
    cache_store_write_status(store, fetch, &writer->lines);
    if (store->storing)
        writer->claim = writer->lines.length - CLAIM.length;
    write_framing(response, length, writer, &writer->lines);
    response_writer_end_head(writer, call);
}

enum service_progress send_response_begin(struct cache_store *store, struct fetch *fetch,
                                          struct service_call *call)
{
    response_writer_start(&fetch->writer);
    cache_store_begin(store, fetch, call);
    if (cache_lookup_wants_rest(store->lookup) && !store->storing)
        return fetch_whole(fetch, store->lookup, call); /* the range is joined in the file */
    if (store->lookup->cache != NULL &&
        (call->request->method == METHOD_GET || call->request->method == METHOD_HEAD))
        cache_counters_note(call->context, CACHE_MISSES, 0);
    if (scoreboard_stopping(call->context->board))
        call->keeps_connection = false;
    write_head(store, fetch, call);
    if (fetch->writer.lines.overflow)
        return stage_fail(call, 502, "The head of the origin's response is too long.");
    call->response->status = fetch->connection.response.status;
    call->client_deadline = 0;
    return stage_go_to(call, STAGE_SEND);
}

/* ---- the body ---- */

/* A reset would take from the client what it has not read yet. So the reset waits until the client
 * has read all, unless that takes too long. Nothing tells when: it has to look again and again. */
static bool awaits_reset(struct fetch *fetch, struct service_call *call)
{
    int64_t now = call->now.milliseconds;

    if (call->client_gone || !transport_is_taking(call->client))
        return false;
    if (fetch->reset_by == 0)
        fetch->reset_by = now + call->context->write_timeout;
    call->descriptor = -1;
    call->to_write = false;
    call->deadline = now + RESET_LOOK_MILLISECONDS;
    return now < fetch->reset_by;
}

enum service_progress send_response_break_off(struct fetch *fetch, struct service_call *call)
{
    const struct response_writer *writer = &fetch->writer;

    if (writer->framing != FRAMING_NONE || writer->bodiless)
        return SERVICE_FAILED;
    if (awaits_reset(fetch, call))
        return SERVICE_WAITS;
    call->client->kind->abandon(call->client);
    return SERVICE_FAILED;
}

/* The origin has broken off its response: the client first gets what has come. Returns false if it
 * has got nothing yet, and nothing of the body has come. */
static bool lose_origin(struct cache_store *store, struct fetch *fetch,
                        const struct service_call *call)
{
    cache_store_finish(store, fetch, call->now, false);
    fetch->writer.broken = true;
    return fetch->writer.begun || call->client_gone || response_writer_holds(&fetch->writer);
}

/* Sends a short end of a stored body from memory, which takes fewer system calls than from its
 * file. Nothing is left to be stored that would have to wait for the client. */
static void send_end_at_once(struct fetch *fetch, struct text data)
{
    struct response_writer *writer = &fetch->writer;

    if (!fetch->connection.whole || data.length > CACHE_STORE_SHORT_BYTES ||
        writer->offset + data.length != writer->file_end)
        return;
    writer->offset += data.length;
    writer->data = data;
}

/* Receives the body where there is room for it. A step does not end before all received bytes are
 * taken: polling the socket does not report them. */
static enum transfer receive(struct cache_store *store, struct fetch *fetch,
                             struct service_call *call, uint64_t *moved)
{
    struct response_writer *writer = &fetch->writer;
    enum transfer transfer = TRANSFER_DONE;
    struct text data;

    while (transfer == TRANSFER_DONE && !writer->complete && !writer->broken &&
           writer->data.length == 0 &&
           (*moved < STEP_BYTES_LIMIT || origin_connection_holds(&fetch->connection))) {
        const struct buffer room = cache_writer_room(&store->writer);

        transfer = origin_connection_body(&fetch->connection, &room, &data);
        if (transfer == TRANSFER_DONE)
            fetch_renew_deadline(fetch, call);
        if (data.length > 0 && cache_store_add(store, fetch, call, data) && !call->client_gone &&
            !store->writer.holds)
            send_end_at_once(fetch, data);
        *moved += data.length;
        writer->complete = fetch->connection.whole;
        if (writer->complete) {
            cache_store_finish(store, fetch, call->now, true);
            fetch_release(fetch, call);
        }
    }
    if (!writer->complete)
        cache_store_flush(store, fetch, call);
    return transfer;
}

enum transfer send_response_pass_on(struct fetch *fetch, struct service_call *call)
{
    enum transfer transfer = response_writer_send(&fetch->writer, call);

    if (transfer == TRANSFER_DONE)
        call->client_deadline = 0;
    else if (call->client_deadline == 0)
        call->client_deadline = call->now.milliseconds + call->context->write_timeout;
    if (transfer == TRANSFER_FAILED || transfer == TRANSFER_END)
        call->client_gone = true;
    return transfer;
}

/* Waits for the origin, the client, or both. */
static enum service_progress wait_for(struct cache_store *store, struct fetch *fetch,
                                      struct service_call *call, enum transfer theirs,
                                      enum transfer ours)
{
    if (fetch->writer.complete || fetch->writer.broken)
        theirs = TRANSFER_END;
    else
        cache_store_show(store, fetch);
    return fetch_wait(fetch, call, call->client_gone ? 0 : fetch_events(ours),
                      fetch_events(theirs));
}

enum service_progress send_response_expire(struct cache_store *store, struct fetch *fetch,
                                           struct service_call *call)
{
    bool late = !fetch->writer.complete && !fetch->writer.broken &&
                call->now.milliseconds >= fetch->deadline;

    /* It is the origin that is late: the client may still take what has come. */
    if (late && lose_origin(store, fetch, call) && response_writer_holds(&fetch->writer) &&
        !call->client_gone)
        return SERVICE_CONTINUES;
    return send_response_break_off(fetch, call);
}

/* Returns true if nobody needs the rest of the response. Once the client has left, only the cache
 * does, and not for ever. */
static bool is_futile(struct cache_store *store, const struct service_call *call)
{
    if (store->finish_by == 0)
        store->finish_by = call->now.milliseconds + FINISH_MILLISECONDS;
    return !store->storing || call->now.milliseconds >= store->finish_by;
}

enum service_progress send_response_run(struct cache_store *store, struct fetch *fetch,
                                        struct service_call *call)
{
    struct response_writer *writer = &fetch->writer;
    uint64_t moved = 0;

    for (;;) {
        enum transfer theirs = receive(store, fetch, call, &moved), ours = TRANSFER_DONE;

        if (theirs == TRANSFER_FAILED && !lose_origin(store, fetch, call)) {
            response_writer_give_up(writer, call);
            return stage_fail(call, 502, "The origin has broken off its response.");
        }
        correct_claim(store, writer);
        if (!call->client_gone)
            ours = send_response_pass_on(fetch, call);
        if (ours == TRANSFER_WRITE)
            cache_store_release(store, fetch);
        if (writer->ended)
            return SERVICE_DONE;
        if (call->client_gone && is_futile(store, call))
            return SERVICE_FAILED;
        if (writer->broken && ours == TRANSFER_DONE)
            return send_response_break_off(fetch, call);
        if (moved >= STEP_BYTES_LIMIT && theirs == TRANSFER_DONE && !writer->complete)
            return wait_for(store, fetch, call, call->client_gone ? TRANSFER_WRITE : TRANSFER_READ,
                            ours == TRANSFER_DONE ? TRANSFER_WRITE : ours);
        if (ours != TRANSFER_DONE || theirs == TRANSFER_READ || theirs == TRANSFER_WRITE)
            return wait_for(store, fetch, call, theirs, ours);
    }
}
