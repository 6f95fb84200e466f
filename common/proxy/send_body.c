#include "common/proxy/send_body.h"

#include "common/proxy/fetch.h"
#include "common/proxy/relay.h"

/* A client that uploads goes on as long as it sends this much in each request timeout. */
#define UPLOAD_BYTES 16384

/* Sends the piece that is at hand, framed as the client's was. */
static enum transfer send_piece(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = asking_send_lines(errand);

    while (transfer == TRANSFER_DONE && passage->piece.length > 0) {
        transfer = upstream_send(&passage->fetch->upstream, &passage->piece);
        if (transfer == TRANSFER_DONE)
            relay_renew(errand);
        if (passage->piece.length == 0 && passage->content.chunked) {
            buffer_add(&passage->fetch->lines, TEXT("\r\n"));
            transfer = asking_send_lines(errand);
        }
    }
    return transfer;
}

/* Takes the next piece off what the client has sent. */
static enum content_progress take_piece(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct buffer *lines = &passage->fetch->lines;
    enum content_progress progress =
        content_take(&passage->content, &errand->received, &passage->piece);

    passage->uploaded = progress == CONTENT_WHOLE;
    if (!passage->content.chunked || progress == CONTENT_REFUSED)
        return progress;
    if (passage->piece.length > 0) {
        buffer_hex(lines, passage->piece.length);
        buffer_add(lines, TEXT("\r\n"));
    } else if (progress == CONTENT_WHOLE) {
        buffer_add(lines, TEXT("0\r\n\r\n"));
    }
    return progress;
}

static enum transfer receive(struct errand *errand)
{
    struct passage *passage = errand->work;
    size_t count;
    enum transfer transfer =
        errand->client->kind->read(errand->client, errand->room, errand->room_size, &count);

    errand->received = (struct text){errand->room, count};
    passage->upload_moved += count;
    if (passage->upload_moved >= UPLOAD_BYTES) {
        passage->upload_moved = 0;
        passage->upload_until = errand->now.milliseconds + errand->site->request_timeout;
    }
    return transfer;
}

/* Nothing more comes from the client now. The origin may have something to say before that. */
static enum progress await_client(struct errand *errand, enum transfer transfer)
{
    struct passage *passage = errand->work;

    if (transfer != TRANSFER_READ && transfer != TRANSFER_WRITE)
        return ERRAND_FAILED; /* it has left in the middle of its request */
    passage->client_slow = true;
    passage->origin = passage->upload_until; /* the origin has its time again when it is sent to */
    return relay_wait(errand, relay_wanted(transfer), PAIR_READ);
}

/* Whether the origin has begun to answer before it has the whole request. */
static bool answers_early(struct errand *errand, enum progress *progress)
{
    struct passage *passage = errand->work;
    enum transfer transfer = upstream_head(&passage->fetch->upstream, errand->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return false;
    *progress = asking_take_head(errand, transfer);
    return true;
}

enum progress uploading_upload(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum progress early;
    uint64_t moved = 0;

    if (passage->client_slow)
        relay_renew(errand);
    passage->client_slow = false;
    for (;;) {
        enum transfer transfer = send_piece(errand);

        if (transfer == TRANSFER_WRITE)
            return answers_early(errand, &early) ? early
                                                 : relay_wait(errand, 0, PAIR_READ | PAIR_WRITE);
        if (transfer != TRANSFER_DONE || passage->uploaded) {
            relay_renew(errand);
            return relay_go_to(passage, STAGE_AWAITING);
        }
        if (take_piece(errand) == CONTENT_REFUSED)
            return relay_refuse(errand, passage->content.status, passage->content.problem);
        if (passage->piece.length > 0 || passage->uploaded)
            continue;
        if (answers_early(errand, &early))
            return early;
        transfer = receive(errand);
        moved += errand->received.length;
        if (transfer != TRANSFER_DONE)
            return await_client(errand, transfer);
        if (moved > RELAY_TURN_BYTES)
            return relay_wait(errand, 0, PAIR_WRITE);
    }
}
