#include "common/passage.h"

#include "common/fields.h"

#include <errno.h>
#include <stdlib.h>

/* What one step moves before it lets others have a turn. */
#define TURN_BYTES (4 * 1024 * 1024)
/* How long a reply is fetched for others after its client has left. */
#define FINISH_MILLISECONDS 60000
/* Replies before the final one. */
#define INTERIM_LIMIT 100
/* A client that uploads goes on as long as it sends this much in each request timeout. */
#define UPLOAD_BYTES 16384

/* ---- what all stages do ---- */

static enum progress go_to(struct passage *passage, enum stage stage)
{
    passage->stage = stage;
    return ERRAND_GOES_ON;
}

enum progress passage_refuse(struct errand *errand, int status, const char *problem)
{
    const struct passage *passage = errand->work;

    /* What is left of the body would be taken for the next request. */
    if (errand->request->framing != FRAMING_NONE && (passage == NULL || !passage->uploaded))
        errand->stays = false;
    response_start(errand->response);
    response_refuse(errand->response, status, problem);
    return ERRAND_ANSWERED;
}

void passage_renew(struct errand *errand)
{
    struct passage *passage = errand->work;

    passage->origin = errand->now.milliseconds + passage->proxy->timeout;
}

unsigned passage_wanted(enum transfer transfer)
{
    return transfer == TRANSFER_READ ? PAIR_READ : transfer == TRANSFER_WRITE ? PAIR_WRITE : 0;
}

enum progress passage_wait(struct errand *errand, unsigned client, unsigned origin)
{
    struct passage *passage = errand->work;
    int ours = errand->client->socket, theirs = passage->fetch->upstream.transport.socket;

    errand->deadline = passage->origin;
    if (client != 0 && errand->client_deadline != 0 &&
        (origin == 0 || errand->client_deadline < errand->deadline))
        errand->deadline = errand->client_deadline;
    errand->to_write = false;
    if ((client == 0 || origin == 0) && (client | origin) != (PAIR_READ | PAIR_WRITE)) {
        errand->descriptor = client != 0 ? ours : theirs;
        errand->to_write = (client | origin) == PAIR_WRITE;
    } else {
        errand->descriptor = pair_watch(&passage->pair, ours, client, theirs, origin);
    }
    return errand->descriptor >= 0 ? ERRAND_WAITS : ERRAND_FAILED;
}

/* The origin, or the way to it, has failed before anything of a reply went to the client. */
static enum progress fail(struct errand *errand, int status, const char *problem)
{
    if (storage_bridge(errand, 0))
        return ERRAND_ANSWERED;
    return passage_refuse(errand, status, problem);
}

/* ---- the beginning ---- */

static bool is_numeric_above(struct text path, uint64_t limit)
{
    uint64_t number;

    for (size_t i = 1; i < path.length; i++)
        if (path.data[i] < '0' || path.data[i] > '9')
            return false;
    /* One that is too large to be held is above all limits. */
    return path.length > 1 &&
           (!text_number((struct text){path.data + 1, path.length - 1}, &number) || number > limit);
}

static bool may_go_no_further(const struct request *request)
{
    struct text value;
    uint64_t number;

    return request->method == METHOD_OPTIONS &&
           fields_single(request->fields, TEXT("Max-Forwards"), &value) &&
           text_number(value, &number) && number == 0;
}

/* Which host is meant. 0, or the status of a refusal. */
static int find_authority(struct errand *errand, const char **problem)
{
    struct passage *passage = errand->work;
    const struct request *request = errand->request;
    uint16_t port = request->method == METHOD_CONNECT ? 0 : 80;

    *problem = "The request target names no host and port that can be connected to.";
    passage->authority = request->host;
    if (passage->proxy->origin != NULL) {
        if (request->method == METHOD_CONNECT) {
            *problem = "This proxy stands before one origin, and makes no tunnels.";
            return 405;
        }
        passage->authority = text_of(passage->proxy->origin);
    } else if (request->method != METHOD_CONNECT && !forward_is_absolute(request)) {
        *problem = "This is a proxy: it wants to be asked for whole addresses, such as "
                   "http://127.0.0.1:8080/.";
        return 400;
    }
    return destination_split(passage->authority, port, &passage->host, &passage->port) ? 0 : 400;
}

static int find_destination(struct errand *errand, const char **problem)
{
    struct passage *passage = errand->work;
    const struct proxy *proxy = passage->proxy;
    struct text hosts = {proxy->hosts, proxy->hosts_length};

    if (destination_find(&passage->destination, hosts, passage->host, passage->port))
        return proxy_judge(proxy, &passage->destination, problem);
    *problem = "The host is not known here: it is no numeric address, not localhost, and not in "
               "the hosts file of the proxy.";
    return 502;
}

/* What can be said without asking anybody. 0, or a status. */
static int judge(const struct errand *errand, const char **problem)
{
    const struct passage *passage = errand->work;
    const struct proxy *proxy = passage->proxy;
    const struct request *request = errand->request;

    if (forward_has_looped(request, text_of(proxy->name))) {
        *problem = "The request has come through this proxy before.";
        return 508;
    }
    if (request->scheme == SCHEME_HTTPS && proxy->origin_port == 0) {
        *problem = "Origins are asked by plain HTTP: to reach one by HTTPS, use CONNECT.";
        return 400;
    }
    if (request->method == METHOD_TRACE) {
        *problem = "Requests are not sent back here.";
        return 405;
    }
    if (proxy->classroom && is_numeric_above(request->path, 9999)) {
        *problem = "The number is above 9999.";
        return 414;
    }
    if (request->framing == FRAMING_LENGTH && request->content_length > proxy->body_limit) {
        *problem = "The body of the request is longer than is allowed here.";
        return 413;
    }
    return 0;
}

static bool make(struct errand *errand)
{
    struct passage *passage = calloc(1, sizeof *passage);

    if (passage == NULL)
        return false;
    passage->proxy = errand->site->proxy;
    passage->cache = passage->proxy->cache.shared != NULL ? &passage->proxy->cache : NULL;
    passage->entry.file = passage->writer.file = passage->lock = -1;
    passage->uploaded = errand->request->framing == FRAMING_NONE;
    pair_start(&passage->pair);
    errand->work = passage;
    return true;
}

static enum progress begin(struct errand *errand)
{
    const struct request *request = errand->request;
    struct passage *passage = errand->work;
    const char *problem = NULL;
    int status = judge(errand, &problem);

    if (status == 0 && may_go_no_further(request)) {
        errand->response->status = 204;
        errand->response->allow = TEXT("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, CONNECT");
        return ERRAND_ANSWERED;
    }
    if (status == 0)
        status = find_authority(errand, &problem);
    if (status == 0)
        status = find_destination(errand, &problem);
    if (status == 0 && !storage_begin(errand)) {
        status = 503;
        problem = "The proxy has no memory for this request.";
    }
    if (status == 0)
        return go_to(passage, passage->reads ? STAGE_LOOKING : STAGE_OPENING);
    passage_refuse(errand, status, problem);
    if (status == 405)
        errand->response->allow = TEXT("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
    return ERRAND_ANSWERED;
}

/* ---- asking the origin ---- */

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

    passage->requested = errand->now.seconds;
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
        return fail(errand, 404, "The origin is not running.");
    if (passage->late || passage->validates)
        return fail(errand, 504,
                    passage->late ? "The origin did not accept the connection in time."
                                  : "The stored reply is stale, and the origin cannot be asked.");
    return fail(errand, 502, "The origin does not accept connections.");
}

/* Begins to connect to the next address. */
static enum progress try_next(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct upstream *upstream = &passage->fetch->upstream;

    pair_close(&passage->pair);
    passage_renew(errand);
    while (passage->tried < passage->destination.count)
        if (upstream_connect(upstream, &passage->destination.addresses[passage->tried++]))
            return go_to(passage, STAGE_CONNECTING);
    return fail_to_connect(errand);
}

bool passage_make_fetch(struct errand *errand)
{
    struct passage *passage = errand->work;

    passage->fetch = malloc(sizeof *passage->fetch);
    if (passage->fetch != NULL)
        upstream_start(&passage->fetch->upstream);
    return passage->fetch != NULL;
}

static enum progress open_origin(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (errand->behind)
        return ERRAND_BEHIND;
    if (passage->fetch == NULL && !passage_make_fetch(errand))
        return passage_refuse(errand, 503, "The proxy has no memory for this request.");
    if (!write_request(errand))
        return passage_refuse(errand, 431, "The head of the request is too long to be passed on.");
    return try_next(errand);
}

enum progress passage_ask_again(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->retried)
        return passage_refuse(errand, 502, "The origin confirms what it was not asked about.");
    passage->retried = true;
    passage->tried = 0;
    pair_close(&passage->pair);
    upstream_close(&passage->fetch->upstream);
    upstream_start(&passage->fetch->upstream);
    return go_to(passage, STAGE_OPENING);
}

static enum progress connect_origin(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = upstream_connected(&passage->fetch->upstream);

    if (transfer == TRANSFER_WRITE)
        return passage_wait(errand, 0, PAIR_WRITE);
    if (transfer != TRANSFER_DONE)
        return try_next(errand);
    passage_renew(errand);
    if (errand->request->method != METHOD_CONNECT)
        return go_to(passage, STAGE_SENDING);
    passage->stage = STAGE_TUNNELLING;
    return tunnel_begin(errand);
}

/* Sends the lines; what stands in the way of that may be a reply that came early. */
static enum transfer send_lines(struct errand *errand)
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
        passage_renew(errand);
    }
    fetch->sent = fetch->lines.length = 0;
    return TRANSFER_DONE;
}

static enum progress send_head(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = send_lines(errand);

    if (transfer == TRANSFER_WRITE)
        return passage_wait(errand, 0, PAIR_WRITE);
    if (transfer != TRANSFER_DONE || passage->uploaded)
        return go_to(passage, STAGE_AWAITING);
    content_begin(&passage->content, errand->request->framing, errand->request->content_length,
                  passage->proxy->body_limit);
    passage->upload_until = errand->now.milliseconds + errand->site->request_timeout;
    return go_to(passage, STAGE_UPLOADING);
}

/* ---- the body of the request ---- */

/* Sends the piece that is at hand, framed as the client's was. */
static enum transfer send_piece(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = send_lines(errand);

    while (transfer == TRANSFER_DONE && passage->piece.length > 0) {
        transfer = upstream_send(&passage->fetch->upstream, &passage->piece);
        passage_renew(errand);
        if (passage->piece.length == 0 && passage->content.chunked) {
            buffer_add(&passage->fetch->lines, TEXT("\r\n"));
            transfer = send_lines(errand);
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
    return passage_wait(errand, passage_wanted(transfer), PAIR_READ);
}

static enum progress take_head(struct errand *errand, enum transfer transfer);

/* Whether the origin has begun to answer before it has the whole request. */
static bool answers_early(struct errand *errand, enum progress *progress)
{
    struct passage *passage = errand->work;
    enum transfer transfer = upstream_head(&passage->fetch->upstream, errand->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return false;
    *progress = take_head(errand, transfer);
    return true;
}

static enum progress upload(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum progress early;
    uint64_t moved = 0;

    passage->client_slow = false;
    for (;;) {
        enum transfer transfer = send_piece(errand);

        if (transfer == TRANSFER_WRITE)
            return answers_early(errand, &early) ? early
                                                 : passage_wait(errand, 0, PAIR_READ | PAIR_WRITE);
        if (transfer != TRANSFER_DONE || passage->uploaded) {
            passage_renew(errand);
            return go_to(passage, STAGE_AWAITING);
        }
        if (take_piece(errand) == CONTENT_REFUSED)
            return passage_refuse(errand, passage->content.status, passage->content.problem);
        if (passage->piece.length > 0 || passage->uploaded)
            continue;
        if (answers_early(errand, &early))
            return early;
        transfer = receive(errand);
        moved += errand->received.length;
        if (transfer != TRANSFER_DONE)
            return await_client(errand, transfer);
        if (moved > TURN_BYTES)
            return passage_wait(errand, 0, PAIR_WRITE);
    }
}

/* ---- the reply ---- */

/* Passes on what an origin says in between. */
static enum progress pass_interim(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *reply = &passage->fetch->upstream.reply;
    struct delivery *delivery = &passage->fetch->delivery;

    if (++passage->interims > INTERIM_LIMIT)
        return fail(errand, 502, "The origin does not come to an end with what it says before.");
    if (reply->status == 101)
        return fail(errand, 502, "The origin changes to a protocol that nobody has asked for.");
    if (errand->request->minor == 0 || errand->site->protocol == PROTOCOL_SIMPLE ||
        errand->client->datagram != NULL)
        return ERRAND_GOES_ON;
    delivery_start(delivery);
    buffer_add(&delivery->lines, TEXT("HTTP/1.1 "));
    buffer_number(&delivery->lines, (uint64_t)reply->status);
    buffer_character(&delivery->lines, ' ');
    buffer_add(&delivery->lines, reply->reason);
    buffer_add(&delivery->lines, TEXT("\r\n"));
    forward_fields(reply->fields, &delivery->lines);
    buffer_add(&delivery->lines, TEXT("\r\n"));
    /* It is small, and nothing else is on its way: a client whose window is closed has not read
     * what came long before. */
    return delivery_send(delivery, errand) == TRANSFER_DONE ? ERRAND_GOES_ON : ERRAND_FAILED;
}

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

bool passage_goes_on(const struct errand *errand)
{
    return errand->stays && errand->request->keep_alive &&
           errand->site->protocol != PROTOCOL_SIMPLE;
}

void passage_write_persistence(const struct errand *errand, struct buffer *lines)
{
    if (!passage_goes_on(errand))
        buffer_add(lines, TEXT("Connection: close\r\n"));
    else if (errand->request->minor == 0)
        buffer_add(lines, TEXT("Connection: keep-alive\r\n"));
    buffer_add(lines, TEXT("\r\n"));
}

void passage_write_status(const struct errand *errand, int status, struct text reason,
                          struct buffer *lines)
{
    buffer_add(lines,
               errand->site->protocol == PROTOCOL_SIMPLE ? TEXT("HTTP/1.0 ") : TEXT("HTTP/1.1 "));
    buffer_number(lines, (uint64_t)status);
    buffer_character(lines, ' ');
    buffer_add(lines, reason);
    buffer_add(lines, TEXT("\r\n"));
}

static void write_reply(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *reply = &passage->fetch->upstream.reply;
    struct delivery *delivery = &passage->fetch->delivery;
    struct buffer *lines = &delivery->lines;

    choose_framing(errand, delivery);
    passage_write_status(errand, reply->status, reply->reason, lines);
    forward_fields(reply->fields, lines);
    forward_via(reply->minor, text_of(passage->proxy->name), lines);
    storage_describe(errand, lines);
    write_framing(reply, delivery, lines);
    passage_write_persistence(errand, lines);
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

static enum progress begin_reply(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct fetch *fetch = passage->fetch;

    date_reply(&fetch->upstream, errand->now.seconds);
    if (passage->validates && fetch->upstream.reply.status == 304)
        return storage_confirm(errand);
    if (policy_is_error(fetch->upstream.reply.status) &&
        storage_bridge(errand, fetch->upstream.reply.status))
        return ERRAND_ANSWERED;
    delivery_start(&fetch->delivery);
    storage_take(errand);
    if (!passage->uploaded)
        errand->stays = false; /* the rest of the request is not wanted any more */
    if (scoreboard_stopping(errand->site->board))
        errand->stays = false;
    write_reply(errand);
    if (fetch->delivery.lines.overflow)
        return fail(errand, 502, "The head of the origin's reply is too long.");
    errand->response->status = fetch->upstream.reply.status;
    errand->client_deadline = 0;
    return go_to(passage, STAGE_DELIVERING);
}

/* What to do once the head of a reply has come, or will not. */
static enum progress take_head(struct errand *errand, enum transfer transfer)
{
    struct passage *passage = errand->work;
    const struct upstream *upstream = &passage->fetch->upstream;

    if (transfer != TRANSFER_DONE)
        return fail(errand, 502,
                    upstream->problem != NULL ? upstream->problem
                                              : "The origin has ended the connection without a "
                                                "reply.");
    passage_renew(errand);
    return upstream->reply.status < 200 ? pass_interim(errand) : begin_reply(errand);
}

static enum progress await_head(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum transfer transfer = upstream_head(&passage->fetch->upstream, errand->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return passage_wait(errand, 0, passage_wanted(transfer));
    return take_head(errand, transfer);
}

/* ---- delivering ---- */

/* The reply cannot be completed, and the client must not take it for whole. */
static enum progress break_off(struct errand *errand)
{
    const struct passage *passage = errand->work;
    const struct delivery *delivery = &passage->fetch->delivery;

    if (delivery->framing == FRAMING_NONE && !delivery->bodiless)
        errand->client->kind->abandon(errand->client);
    return ERRAND_FAILED;
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
           (*moved < TURN_BYTES || upstream_holds(&fetch->upstream))) {
        transfer = upstream_body(&fetch->upstream, &data);
        if (transfer == TRANSFER_DONE)
            passage_renew(errand);
        if (data.length > 0 && !storage_add(errand, data))
            delivery->data = data;
        *moved += data.length;
        delivery->complete = fetch->upstream.whole;
        if (delivery->complete)
            storage_finish(errand, true);
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
    return passage_wait(errand, errand->client_gone ? 0 : passage_wanted(ours),
                        passage_wanted(theirs));
}

/* Once the client has left, the reply is fetched for others alone, and not for ever. */
static bool is_in_vain(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->finish_by == 0)
        passage->finish_by = errand->now.milliseconds + FINISH_MILLISECONDS;
    return !passage->storing || errand->now.milliseconds >= passage->finish_by;
}

enum progress passage_deliver(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct delivery *delivery = &passage->fetch->delivery;
    uint64_t moved = 0;

    for (;;) {
        enum transfer theirs = collect(errand, &moved), ours = TRANSFER_DONE;

        if (theirs == TRANSFER_FAILED)
            return break_off(errand);
        if (!errand->client_gone)
            ours = pass_on(errand);
        if (delivery->ended)
            return ERRAND_DONE;
        if (errand->client_gone && is_in_vain(errand))
            return ERRAND_FAILED;
        if (moved >= TURN_BYTES && theirs == TRANSFER_DONE && !delivery->complete)
            return wait_for(errand, TRANSFER_READ, ours == TRANSFER_DONE ? TRANSFER_WRITE : ours);
        if (ours != TRANSFER_DONE || theirs == TRANSFER_READ || theirs == TRANSFER_WRITE)
            return wait_for(errand, theirs, ours);
    }
}

/* ---- the service ---- */

/* What comes after the client has its reply is nothing to tell it. */
static enum progress conclude(struct errand *errand, enum progress progress)
{
    const struct passage *passage = errand->work;

    if (passage == NULL || !passage->background || progress == ERRAND_WAITS)
        return progress;
    response_end(errand->response);
    errand->response->status = passage->served;
    return ERRAND_DONE;
}

static enum progress step(struct errand *errand)
{
    static enum progress (*const stages[])(struct errand *) = {
        [STAGE_BEGINNING] = begin,
        [STAGE_LOOKING] = storage_look,
        [STAGE_SERVING] = storage_serve,
        [STAGE_OPENING] = open_origin,
        [STAGE_CONNECTING] = connect_origin,
        [STAGE_SENDING] = send_head,
        [STAGE_UPLOADING] = upload,
        [STAGE_AWAITING] = await_head,
        [STAGE_DELIVERING] = passage_deliver,
        [STAGE_TUNNELLING] = tunnel_relay,
    };
    enum progress progress = ERRAND_GOES_ON;

    if (errand->work == NULL && !make(errand))
        return passage_refuse(errand, 503, "The proxy has no memory for this request.");
    while (progress == ERRAND_GOES_ON) {
        const struct passage *passage = errand->work;
        progress = stages[passage->stage](errand);
    }
    return conclude(errand, progress);
}

static enum progress give_up(struct errand *errand)
{
    struct passage *passage = errand->work;

    switch (passage->stage) {
    case STAGE_CONNECTING:
        passage->late = true;
        return try_next(errand);
    case STAGE_UPLOADING:
        if (passage->client_slow)
            return passage_refuse(errand, 408, "The body of the request did not come in time.");
        /* fall through */
    case STAGE_SENDING:
    case STAGE_AWAITING:
        return fail(errand, 504, "The origin did not answer in time.");
    case STAGE_DELIVERING:
        return break_off(errand);
    case STAGE_TUNNELLING:
        return ERRAND_DONE;
    case STAGE_BEGINNING:
    case STAGE_LOOKING: /* for what somebody else fetches: it looks again */
    case STAGE_SERVING:
    case STAGE_OPENING:
        break;
    }
    return ERRAND_WAITS;
}

static enum progress expire(struct errand *errand)
{
    enum progress progress = give_up(errand);

    /* The step that follows goes on. */
    return conclude(errand, progress == ERRAND_GOES_ON ? ERRAND_WAITS : progress);
}

static void end(struct errand *errand)
{
    struct passage *passage = errand->work;

    pair_close(&passage->pair);
    if (passage->fetch != NULL)
        upstream_close(&passage->fetch->upstream);
    storage_end(errand);
    free(passage->fetch);
    free(passage);
}

const struct service service_proxy = {
    .name = "proxy",
    .serves = "what others have",
    .connects = true,
    .descriptors = 2, /* the origin, and what waits for both sides of a tunnel */
    .step = step,
    .expire = expire,
    .end = end,
};
