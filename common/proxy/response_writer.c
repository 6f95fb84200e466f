/* Sends a response to the client, with the framing that the client can read. */
#include "common/proxy/response_writer.h"

#include <stddef.h>
#include <string.h>

/* A piece of the body up to this length is copied, not sent in a write of its own. */
#define JOINED_BYTES 8192
/* The size line and the end of a chunk are shorter than this. */
#define FRAME_BYTES 64

void response_writer_start(struct response_writer *writer)
{
    memset(writer, 0, offsetof(struct response_writer, space));
    writer->file = -1;
    writer->lines = (struct buffer){.data = writer->space, .capacity = sizeof writer->space};
}

/* ---- the head ---- */

void response_writer_add_status(struct response_writer *writer, const struct service_call *call,
                                int status, struct text reason)
{
    struct buffer *lines = &writer->lines;

    buffer_add(lines,
               call->context->protocol == PROTOCOL_SIMPLE ? TEXT("HTTP/1.0 ") : TEXT("HTTP/1.1 "));
    buffer_number(lines, (uint64_t)status);
    buffer_character(lines, ' ');
    buffer_add(lines, reason);
    buffer_add(lines, TEXT("\r\n"));
}

bool response_writer_keeps_connection(const struct service_call *call)
{
    return call->keeps_connection && call->request->keep_alive &&
           call->context->protocol != PROTOCOL_SIMPLE;
}

void response_writer_end_head(struct response_writer *writer, const struct service_call *call)
{
    if (!response_writer_keeps_connection(call))
        buffer_add(&writer->lines, TEXT("Connection: close\r\n"));
    else if (call->request->minor == 0)
        buffer_add(&writer->lines, TEXT("Connection: keep-alive\r\n"));
    buffer_add(&writer->lines, TEXT("\r\n"));
}

/* ---- sending ---- */

/* Bytes of the body that have arrived and are not sent. */
static uint64_t at_hand(const struct response_writer *writer)
{
    uint64_t in_file = writer->file >= 0 ? writer->file_end - writer->offset : 0;

    return in_file > 0 ? in_file : writer->data.length;
}

bool response_writer_holds(const struct response_writer *writer)
{
    return writer->portion > 0 || at_hand(writer) > 0;
}

static enum transfer send_lines(struct response_writer *writer, struct service_call *call)
{
    struct text rest = {writer->lines.data + writer->sent, writer->lines.length - writer->sent};
    uint64_t more = writer->portion > 0 ? writer->portion : at_hand(writer);
    size_t count;
    enum transfer transfer = call->client->kind->write(call->client, rest, more, &count);

    call->sent += count;
    writer->sent += count;
    writer->begun |= count > 0;
    if (writer->sent == writer->lines.length)
        writer->sent = writer->lines.length = 0;
    return transfer;
}

static enum transfer send_portion(struct response_writer *writer, struct service_call *call)
{
    struct transport *client = call->client;
    bool in_file = writer->file >= 0 && writer->offset < writer->file_end;
    enum transfer transfer;
    size_t count;

    if (in_file) {
        uint64_t sound =
            writer->checked == NULL
                ? writer->portion
                : block_checksums_check(writer->checked, writer->offset, writer->portion);
        if (sound == 0)
            return TRANSFER_FAILED; /* not a damaged byte leaves */
        transfer = client->kind->send_file(client, writer->file,
                                           writer->file_start + writer->offset, sound, &count);
        writer->offset += count;
    } else {
        struct text part = {writer->data.data, (size_t)writer->portion};
        transfer = client->kind->write(client, part, false, &count);
        writer->data.data += count;
        writer->data.length -= count;
    }
    writer->portion -= count;
    call->sent += count;
    call->body_bytes += count;
    return transfer;
}

/* A body may end with the connection. Until it is whole, an end of this process must not look like
 * that. */
static void mark_open_end(struct response_writer *writer, const struct service_call *call,
                          bool open)
{
    if (writer->open_end != open)
        transport_mark_open_end(call->client, open);
    writer->open_end = open;
}

void response_writer_give_up(struct response_writer *writer, const struct service_call *call)
{
    mark_open_end(writer, call, false);
}

/* Begins to send the bytes that have arrived. Returns false if there are none. */
static bool begin_portion(struct response_writer *writer)
{
    bool chunked = writer->framing == FRAMING_CHUNKED;

    if (writer->in_chunk) {
        buffer_add(&writer->lines, TEXT("\r\n"));
        writer->in_chunk = false;
    }
    writer->portion = at_hand(writer);
    if (writer->portion > 0 && chunked) {
        buffer_hex(&writer->lines, writer->portion);
        buffer_add(&writer->lines, TEXT("\r\n"));
        writer->in_chunk = true;
    }
    if (writer->portion == 0 && writer->complete && chunked && !writer->bodiless &&
        !writer->closed) {
        buffer_add(&writer->lines, TEXT("0\r\n\r\n"));
        writer->closed = true;
    }
    return writer->portion > 0 || writer->lines.length > 0;
}

/* Copies a small piece of the body behind the lines: both leave in one write. */
static void join_portion(struct response_writer *writer, struct service_call *call)
{
    struct buffer *lines = &writer->lines;
    size_t room = lines->capacity - lines->length;

    if (writer->data.length == 0 || writer->data.length > JOINED_BYTES ||
        writer->offset < writer->file_end || room < writer->data.length + FRAME_BYTES)
        return;
    begin_portion(writer);
    buffer_add(lines, writer->data);
    call->body_bytes += writer->portion;
    writer->data.length = 0;
    writer->portion = 0;
    if (writer->complete)
        begin_portion(writer); /* the end of the last chunk */
}

enum transfer response_writer_send(struct response_writer *writer, struct service_call *call)
{
    if (writer->framing == FRAMING_NONE && !writer->bodiless && !writer->ended)
        mark_open_end(writer, call, true);
    for (;;) {
        enum transfer transfer;

        if (call->sent >= STEP_BYTES_LIMIT)
            return TRANSFER_WRITE;
        if (writer->sent == 0 && writer->lines.length > 0 && writer->portion == 0)
            join_portion(writer, call);
        if (writer->sent < writer->lines.length) {
            transfer = send_lines(writer, call);
        } else if (writer->portion > 0) {
            transfer = send_portion(writer, call);
        } else if (begin_portion(writer)) {
            continue;
        } else {
            writer->ended = writer->complete;
            if (writer->ended)
                mark_open_end(writer, call, false);
            return TRANSFER_DONE;
        }
        if (transfer != TRANSFER_DONE)
            return transfer;
    }
}
