#include "common/proxy/fetch.h"

#include "common/http/fields.h"
#include "common/proxy/relay.h"
#include "common/proxy/storage.h"
#include "common/proxy/tunnel.h"

/* Replies before the final one. */
#define INTERIM_LIMIT 100

/* ---- connecting ---- */

static bool write_request(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct fetch *fetch = proxied->fetch;
    struct rewrite rewrite = {
        .request = call->request,
        .authority = proxied->authority,
        .via = text_of(proxied->proxy->name),
        .validates = proxied->validates,
    };

    if (proxied->validates) {
        rewrite.etag = proxied->kept.etag;
        rewrite.modified = proxied->kept.modified_text;
    }

    storage_note_asking(call);
    fetch->lines = (struct buffer){.data = fetch->space, .capacity = sizeof fetch->space};
    fetch->sent = 0;
    if (call->request->method != METHOD_CONNECT)
        rewrite_request(&rewrite, &fetch->lines);
    return !fetch->lines.overflow;
}

static enum service_progress fail_to_connect(struct service_call *call)
{
    const struct proxy_request *proxied = call->work;

    if (proxied->proxy->classroom)
        return relay_fail(call, 404, "The origin is not running.");
    if (proxied->late || proxied->entry.space != NULL)
        return relay_fail(call, 504,
                          proxied->late
                              ? "The origin did not accept the connection in time."
                              : "The stored reply is stale, and the origin cannot be asked.");
    return relay_fail(call, 502, "The origin does not accept connections.");
}

enum service_progress fetch_try_next(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct upstream *upstream = &proxied->fetch->upstream;

    poll_pair_close(&proxied->poll_pair);
    relay_renew(call);
    while (proxied->tried < proxied->destination.count)
        if (upstream_connect(upstream, &proxied->destination.addresses[proxied->tried++]))
            return relay_go_to(proxied, STAGE_CONNECTING);
    return fail_to_connect(call);
}

enum service_progress fetch_open(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    if (call->output_pending)
        return SERVICE_NEEDS_FLUSH;
    if (proxied->fetch == NULL && !relay_make_fetch(call))
        return relay_refuse(call, 503, "The proxy has no memory for this request.");
    if (!write_request(call))
        return relay_refuse(call, 431, "The head of the request is too long to be passed on.");
    return fetch_try_next(call);
}

enum service_progress fetch_again(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    proxied->tried = 0;
    poll_pair_close(&proxied->poll_pair);
    upstream_close(&proxied->fetch->upstream);
    upstream_start(&proxied->fetch->upstream);
    return relay_go_to(proxied, STAGE_OPENING);
}

enum service_progress fetch_connect(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum transfer transfer = upstream_connected(&proxied->fetch->upstream);

    if (transfer == TRANSFER_WRITE)
        return relay_wait(call, 0, POLL_PAIR_WRITE);
    if (transfer != TRANSFER_DONE)
        return fetch_try_next(call);
    relay_renew(call);
    if (call->request->method != METHOD_CONNECT)
        return relay_go_to(proxied, STAGE_SENDING);
    return tunnel_begin(call);
}

/* ---- sending ---- */

enum transfer fetch_send_lines(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct fetch *fetch = proxied->fetch;

    while (fetch->sent < fetch->lines.length) {
        struct text rest = {fetch->lines.data + fetch->sent, fetch->lines.length - fetch->sent};
        size_t before = rest.length;
        enum transfer transfer = upstream_send(&fetch->upstream, &rest);
        fetch->sent += before - rest.length;
        if (transfer != TRANSFER_DONE)
            return transfer;
        relay_renew(call);
    }
    fetch->sent = fetch->lines.length = 0;
    return TRANSFER_DONE;
}

enum service_progress fetch_send(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum transfer transfer = fetch_send_lines(call);

    if (transfer == TRANSFER_WRITE)
        return relay_wait(call, 0, POLL_PAIR_WRITE);
    if (transfer != TRANSFER_DONE || proxied->uploaded)
        return relay_go_to(proxied, STAGE_AWAITING);
    body_reader_begin(&proxied->body_reader, call->request->framing, call->request->content_length,
                      proxied->proxy->body_limit);
    proxied->upload_until = call->now.milliseconds + call->context->request_timeout;
    return relay_go_to(proxied, STAGE_UPLOADING);
}

/* ---- the head of the reply ---- */

/* Begins to pass on what an origin says in between. */
static enum service_progress pass_interim(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    const struct parsed_response *response = &proxied->fetch->upstream.response;
    struct response_writer *writer = &proxied->fetch->writer;

    if (++proxied->interims > INTERIM_LIMIT)
        return relay_fail(call, 502,
                          "The origin does not come to an end with what it says before.");
    if (response->status == 101)
        return relay_fail(call, 502, "The origin changes to a protocol that nobody has asked for.");
    if (call->request->minor == 0 || call->context->protocol == PROTOCOL_SIMPLE ||
        call->client->kind->one_request || proxied->background)
        return SERVICE_CONTINUES;
    response_writer_start(writer);
    relay_write_status(call, response->status, response->reason, &writer->lines);
    rewrite_fields(response->fields, &writer->lines);
    rewrite_via(response->minor, text_of(proxied->proxy->name), &writer->lines);
    buffer_add(&writer->lines, TEXT("\r\n"));
    proxied->hinted = proxied->stage;
    call->client_deadline = 0;
    return relay_go_to(proxied, STAGE_HINTING);
}

enum service_progress fetch_hint(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum transfer transfer = TRANSFER_FAILED;

    if (!call->client_gone)
        transfer = response_writer_send(&proxied->fetch->writer, call);
    if (transfer == TRANSFER_DONE) {
        call->client_deadline = 0;
        relay_renew(call);
        return relay_go_to(proxied, proxied->hinted);
    }
    if (transfer != TRANSFER_READ && transfer != TRANSFER_WRITE)
        return SERVICE_FAILED;
    if (call->client_deadline == 0) /* it has not read yet what came before */
        call->client_deadline = call->now.milliseconds + call->context->write_timeout;
    storage_give_way(proxied); /* nobody else is to wait for this client */
    return relay_wait(call, relay_wanted(transfer), 0);
}

/* A reply without a date has that of its arrival. */
static void date_response(struct upstream *upstream, int64_t now)
{
    size_t before = upstream->lines.length;

    if (fields_has(upstream->response.fields, TEXT("Date")))
        return;
    buffer_add(&upstream->lines, TEXT("Date: "));
    date_write(&upstream->lines, now);
    buffer_add(&upstream->lines, TEXT("\r\n"));
    upstream->response.fields.length += upstream->lines.length - before;
}

enum service_progress fetch_take_head(struct service_call *call, enum transfer transfer)
{
    struct proxy_request *proxied = call->work;
    struct upstream *upstream = &proxied->fetch->upstream;

    if (transfer != TRANSFER_DONE)
        return relay_fail(call, 502,
                          upstream->problem != NULL
                              ? upstream->problem
                              : "The origin has ended the connection without a reply.");
    relay_renew(call);
    if (upstream->response.status < 200)
        return pass_interim(call);
    date_response(upstream, call->now.seconds);
    return relay_go_to(proxied, STAGE_JUDGING);
}

enum service_progress fetch_await(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum transfer transfer = upstream_head(&proxied->fetch->upstream, call->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return relay_wait(call, 0, relay_wanted(transfer));
    return fetch_take_head(call, transfer);
}
