#include "common/proxy/fetch.h"

#include "common/http/fields.h"
#include "common/proxy/relay.h"
#include "common/proxy/storage.h"
#include "common/proxy/tunnel.h"

/* Replies before the final one. */
#define INTERIM_LIMIT 100

/* ---- connecting ---- */

static bool write_request(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct fetch *fetch = passage->fetch;
    struct forward forward = {
        .request = errand->request,
        .authority = passage->authority,
        .via = text_of(passage->proxy->name),
        .validates = passage->validates,
    };

    if (passage->validates) {
        forward.etag = passage->kept.etag;
        forward.modified = passage->kept.modified_text;
    }

    storage_note_asking(errand);
    fetch->lines = (struct buffer){.data = fetch->space, .capacity = sizeof fetch->space};
    fetch->sent = 0;
    if (errand->request->method != METHOD_CONNECT)
        forward_request(&forward, &fetch->lines);
    return !fetch->lines.overflow;
}

static enum progress fail_to_connect(struct errand *errand)
{
    const struct passage *passage = errand->work;

    if (passage->proxy->classroom)
        return relay_fail(errand, 404, "The origin is not running.");
    if (passage->late || passage->entry.space != NULL)
        return relay_fail(errand, 504,
                          passage->late
                              ? "The origin did not accept the connection in time."
                              : "The stored reply is stale, and the origin cannot be asked.");
    return relay_fail(errand, 502, "The origin does not accept connections.");
}

enum progress asking_try_next(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct upstream *upstream = &passage->fetch->upstream;

    pair_close(&passage->pair);
    relay_renew(errand);
    while (passage->tried < passage->destination.count)
        if (upstream_connect(upstream, &passage->destination.addresses[passage->tried++]))
            return relay_go_to(passage, STAGE_CONNECTING);
    return fail_to_connect(errand);
}

enum progress asking_open(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (errand->behind)
        return ERRAND_BEHIND;
    if (passage->fetch == NULL && !relay_make_fetch(errand))
        return relay_refuse(errand, 503, "The proxy has no memory for this request.");
    if (!write_request(errand))
        return relay_refuse(errand, 431, "The head of the request is too long to be passed on.");
    return asking_try_next(errand);
}

enum progress asking_again(struct errand *errand)
{
    struct passage *passage = errand->work;

    passage->tried = 0;
    pair_close(&passage->pair);
    upstream_close(&passage->fetch->upstream);
    upstream_start(&passage->fetch->upstream);
    return relay_go_to(passage, STAGE_OPENING);
}

enum progress asking_connect(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = upstream_connected(&passage->fetch->upstream);

    if (transfer == TRANSFER_WRITE)
        return relay_wait(errand, 0, PAIR_WRITE);
    if (transfer != TRANSFER_DONE)
        return asking_try_next(errand);
    relay_renew(errand);
    if (errand->request->method != METHOD_CONNECT)
        return relay_go_to(passage, STAGE_SENDING);
    return tunnel_begin(errand);
}

/* ---- sending ---- */

enum transfer asking_send_lines(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct fetch *fetch = passage->fetch;

    while (fetch->sent < fetch->lines.length) {
        struct text rest = {fetch->lines.data + fetch->sent, fetch->lines.length - fetch->sent};
        size_t before = rest.length;
        enum transfer transfer = upstream_send(&fetch->upstream, &rest);
        fetch->sent += before - rest.length;
        if (transfer != TRANSFER_DONE)
            return transfer;
        relay_renew(errand);
    }
    fetch->sent = fetch->lines.length = 0;
    return TRANSFER_DONE;
}

enum progress asking_send(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = asking_send_lines(errand);

    if (transfer == TRANSFER_WRITE)
        return relay_wait(errand, 0, PAIR_WRITE);
    if (transfer != TRANSFER_DONE || passage->uploaded)
        return relay_go_to(passage, STAGE_AWAITING);
    content_begin(&passage->content, errand->request->framing, errand->request->content_length,
                  passage->proxy->body_limit);
    passage->upload_until = errand->now.milliseconds + errand->site->request_timeout;
    return relay_go_to(passage, STAGE_UPLOADING);
}

/* ---- the head of the reply ---- */

/* Begins to pass on what an origin says in between. */
static enum progress pass_interim(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *reply = &passage->fetch->upstream.reply;
    struct delivery *delivery = &passage->fetch->delivery;

    if (++passage->interims > INTERIM_LIMIT)
        return relay_fail(errand, 502,
                          "The origin does not come to an end with what it says before.");
    if (reply->status == 101)
        return relay_fail(errand, 502,
                          "The origin changes to a protocol that nobody has asked for.");
    if (errand->request->minor == 0 || errand->site->protocol == PROTOCOL_SIMPLE ||
        errand->client->datagram != NULL || passage->background)
        return ERRAND_GOES_ON;
    delivery_start(delivery);
    relay_write_status(errand, reply->status, reply->reason, &delivery->lines);
    forward_fields(reply->fields, &delivery->lines);
    forward_via(reply->minor, text_of(passage->proxy->name), &delivery->lines);
    buffer_add(&delivery->lines, TEXT("\r\n"));
    passage->hinted = passage->stage;
    errand->client_deadline = 0;
    return relay_go_to(passage, STAGE_HINTING);
}

enum progress asking_hint(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = TRANSFER_FAILED;

    if (!errand->client_gone)
        transfer = delivery_send(&passage->fetch->delivery, errand);
    if (transfer == TRANSFER_DONE) {
        errand->client_deadline = 0;
        relay_renew(errand);
        return relay_go_to(passage, passage->hinted);
    }
    if (transfer != TRANSFER_READ && transfer != TRANSFER_WRITE)
        return ERRAND_FAILED;
    if (errand->client_deadline == 0) /* it has not read yet what came before */
        errand->client_deadline = errand->now.milliseconds + errand->site->write_timeout;
    storage_give_way(passage); /* nobody else is to wait for this client */
    return relay_wait(errand, relay_wanted(transfer), 0);
}

/* A reply without a date has that of its arrival. */
static void date_reply(struct upstream *upstream, int64_t now)
{
    size_t before = upstream->lines.length;

    if (fields_has(upstream->reply.fields, TEXT("Date")))
        return;
    buffer_add(&upstream->lines, TEXT("Date: "));
    date_write(&upstream->lines, now);
    buffer_add(&upstream->lines, TEXT("\r\n"));
    upstream->reply.fields.length += upstream->lines.length - before;
}

enum progress asking_take_head(struct errand *errand, enum transfer transfer)
{
    struct passage *passage = errand->work;
    struct upstream *upstream = &passage->fetch->upstream;

    if (transfer != TRANSFER_DONE)
        return relay_fail(errand, 502,
                          upstream->problem != NULL
                              ? upstream->problem
                              : "The origin has ended the connection without a reply.");
    relay_renew(errand);
    if (upstream->reply.status < 200)
        return pass_interim(errand);
    date_reply(upstream, errand->now.seconds);
    return relay_go_to(passage, STAGE_JUDGING);
}

enum progress asking_await(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = upstream_head(&passage->fetch->upstream, errand->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return relay_wait(errand, 0, relay_wanted(transfer));
    return asking_take_head(errand, transfer);
}
