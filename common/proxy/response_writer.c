#include "common/proxy/response_writer.h"

#include <stddef.h>
#include <string.h>

/* What one step sends before it lets others have a turn. */
#define TURN_BYTES (4 * 1024 * 1024)

void delivery_start(struct delivery *delivery)
{
    memset(delivery, 0, offsetof(struct delivery, space));
    delivery->file = -1;
    delivery->lines = (struct buffer){.data = delivery->space, .capacity = sizeof delivery->space};
}

/* Bytes of the body that are there. */
static uint64_t at_hand(const struct delivery *delivery)
{
    uint64_t in_file = delivery->file >= 0 ? delivery->file_end - delivery->offset : 0;

    return in_file > 0 ? in_file : delivery->data.length;
}

static enum transfer send_lines(struct delivery *delivery, struct errand *errand)
{
    struct text rest = {delivery->lines.data + delivery->sent,
                        delivery->lines.length - delivery->sent};
    bool more = delivery->portion > 0 || at_hand(delivery) > 0;
    size_t count;
    enum transfer transfer = errand->client->kind->write(errand->client, rest, more, &count);

    errand->sent += count;
    delivery->sent += count;
    delivery->begun |= count > 0;
    if (delivery->sent == delivery->lines.length)
        delivery->sent = delivery->lines.length = 0;
    return transfer;
}

static enum transfer send_portion(struct delivery *delivery, struct errand *errand)
{
    struct transport *client = errand->client;
    bool in_file = delivery->file >= 0 && delivery->offset < delivery->file_end;
    enum transfer transfer;
    size_t count;

    if (in_file) {
        transfer =
            client->kind->send_file(client, delivery->file, delivery->file_start + delivery->offset,
                                    delivery->portion, &count);
        delivery->offset += count;
    } else {
        struct text part = {delivery->data.data, (size_t)delivery->portion};
        transfer = client->kind->write(client, part, false, &count);
        delivery->data.data += count;
        delivery->data.length -= count;
    }
    delivery->portion -= count;
    errand->sent += count;
    errand->body_bytes += count;
    return transfer;
}

/* Turns to what is at hand. False if there is nothing. */
static bool begin_portion(struct delivery *delivery)
{
    bool chunked = delivery->framing == FRAMING_CHUNKED;

    if (delivery->in_chunk) {
        buffer_add(&delivery->lines, TEXT("\r\n"));
        delivery->in_chunk = false;
    }
    delivery->portion = at_hand(delivery);
    if (delivery->portion > 0 && chunked) {
        buffer_hex(&delivery->lines, delivery->portion);
        buffer_add(&delivery->lines, TEXT("\r\n"));
        delivery->in_chunk = true;
    }
    if (delivery->portion == 0 && delivery->complete && chunked && !delivery->bodiless &&
        !delivery->closed) {
        buffer_add(&delivery->lines, TEXT("0\r\n\r\n"));
        delivery->closed = true;
    }
    return delivery->portion > 0 || delivery->lines.length > 0;
}

enum transfer delivery_send(struct delivery *delivery, struct errand *errand)
{
    for (;;) {
        enum transfer transfer;

        if (errand->sent >= TURN_BYTES)
            return TRANSFER_WRITE;
        if (delivery->sent < delivery->lines.length) {
            transfer = send_lines(delivery, errand);
        } else if (delivery->portion > 0) {
            transfer = send_portion(delivery, errand);
        } else if (begin_portion(delivery)) {
            continue;
        } else {
            delivery->ended = delivery->complete;
            return TRANSFER_DONE;
        }
        if (transfer != TRANSFER_DONE)
            return transfer;
    }
}
