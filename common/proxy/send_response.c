#include "common/proxy/send_response.h"

#include "common/proxy/cache_store.h"
#include "common/proxy/relay.h"

/* How long a reply is fetched for others after its client has left. */
#define FINISH_MILLISECONDS 60000

/* ---- the head ---- */

static void choose_framing(struct errand *errand, struct delivery *delivery)
{
    const struct passage *passage = errand->work;
    const struct reply *reply = &passage->fetch->upstream.reply;

    delivery->framing = reply->framing;
    delivery->bodiless = reply->framing == FRAMING_NONE && !reply->until_close;
    if (delivery->bodiless || reply->framing == FRAMING_LENGTH)
        return;
    if (errand->request->minor >= 1 && errand->site->protocol != PROTOCOL_SIMPLE) {
        delivery->framing = FRAMING_CHUNKED;
        return;
    }
    delivery->framing = FRAMING_NONE; /* an old client learns of the end by the end */
    errand->stays = false;
}

static void write_framing(const struct reply *reply, const struct delivery *delivery,
                          struct buffer *lines)
{
    if (reply->has_length && reply->status != 204) {
        buffer_add(lines, TEXT("Content-Length: "));
        buffer_number(lines, reply->content_length);
        buffer_add(lines, TEXT("\r\n"));
    } else if (delivery->framing == FRAMING_CHUNKED) {
        buffer_add(lines, TEXT("Transfer-Encoding: chunked\r\n"));
    }
}

static void write_reply(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *reply = &passage->fetch->upstream.reply;
    struct delivery *delivery = &passage->fetch->delivery;
    struct buffer *lines = &delivery->lines;

    choose_framing(errand, delivery);
    relay_write_status(errand, reply->status, reply->reason, lines);
    forward_fields(reply->fields, lines);
    forward_via(reply->minor, text_of(passage->proxy->name), lines);
    keeping_describe(errand, lines);
    write_framing(reply, delivery, lines);
    relay_write_persistence(errand, lines);
}

enum progress delivering_begin(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct fetch *fetch = passage->fetch;

    delivery_start(&fetch->delivery);
    keeping_take(errand);
    if (!passage->uploaded)
        errand->stays = false; /* the rest of the request is not wanted any more */
    if (scoreboard_stopping(errand->site->board))
        errand->stays = false;
    write_reply(errand);
    if (fetch->delivery.lines.overflow)
        return relay_fail(errand, 502, "The head of the origin's reply is too long.");
    errand->response->status = fetch->upstream.reply.status;
    errand->client_deadline = 0;
    return relay_go_to(passage, STAGE_DELIVERING);
}

/* ---- the body ---- */

enum progress delivering_break_off(struct errand *errand)
{
    const struct passage *passage = errand->work;
    const struct delivery *delivery = &passage->fetch->delivery;

    if (delivery->framing == FRAMING_NONE && !delivery->bodiless)
        errand->client->kind->abandon(errand->client);
    return ERRAND_FAILED;
}

/* The origin has broken off its reply. As long as nothing of that has gone, the client can be told.
 */
static enum progress lose_origin(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->fetch->delivery.begun || errand->client_gone)
        return delivering_break_off(errand);
    keeping_finish(errand, false);
    return relay_fail(errand, 502, "The origin has broken off its reply.");
}

/* Reads what the origin has sent, where there is room for it. */
static enum transfer collect(struct errand *errand, uint64_t *moved)
{
    struct passage *passage = errand->work;
    struct fetch *fetch = passage->fetch;
    struct delivery *delivery = &fetch->delivery;
    enum transfer transfer = TRANSFER_DONE;
    struct text data;

    /* A turn does not end before all that was received is taken: nothing would tell of it. */
    while (transfer == TRANSFER_DONE && !delivery->complete && delivery->data.length == 0 &&
           (*moved < RELAY_TURN_BYTES || upstream_holds(&fetch->upstream))) {
        transfer = upstream_body(&fetch->upstream, &data);
        if (transfer == TRANSFER_DONE)
            relay_renew(errand);
        if (data.length > 0 && !keeping_add(errand, data))
            delivery->data = data;
        *moved += data.length;
        delivery->complete = fetch->upstream.whole;
        if (delivery->complete)
            keeping_finish(errand, true);
    }
    return transfer;
}

static enum transfer pass_on(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = delivery_send(&passage->fetch->delivery, errand);

    if (transfer == TRANSFER_DONE)
        errand->client_deadline = 0;
    else if (errand->client_deadline == 0)
        errand->client_deadline = errand->now.milliseconds + errand->site->write_timeout;
    if (transfer == TRANSFER_FAILED || transfer == TRANSFER_END)
        errand->client_gone = true;
    return transfer;
}

/* Waits for the origin, the client, or both: who is not waited for has nothing to do. */
static enum progress wait_for(struct errand *errand, enum transfer theirs, enum transfer ours)
{
    struct passage *passage = errand->work;

    if (passage->fetch->delivery.complete)
        theirs = TRANSFER_END;
    return relay_wait(errand, errand->client_gone ? 0 : relay_wanted(ours), relay_wanted(theirs));
}

/* Once the client has left, the reply is fetched for others alone, and not for ever. */
static bool is_in_vain(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->finish_by == 0)
        passage->finish_by = errand->now.milliseconds + FINISH_MILLISECONDS;
    return !passage->storing || errand->now.milliseconds >= passage->finish_by;
}

enum progress delivering_deliver(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct delivery *delivery = &passage->fetch->delivery;
    uint64_t moved = 0;

    for (;;) {
        enum transfer theirs = collect(errand, &moved), ours = TRANSFER_DONE;

        if (theirs == TRANSFER_FAILED)
            return lose_origin(errand);
        if (!errand->client_gone)
            ours = pass_on(errand);
        if (delivery->ended)
            return ERRAND_DONE;
        if (errand->client_gone && is_in_vain(errand))
            return ERRAND_FAILED;
        if (moved >= RELAY_TURN_BYTES && theirs == TRANSFER_DONE && !delivery->complete)
            return wait_for(errand, TRANSFER_READ, ours == TRANSFER_DONE ? TRANSFER_WRITE : ours);
        if (ours != TRANSFER_DONE || theirs == TRANSFER_READ || theirs == TRANSFER_WRITE)
            return wait_for(errand, theirs, ours);
    }
}
