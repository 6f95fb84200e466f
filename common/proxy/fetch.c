/* Asks an origin: connects, sends the head of the request, and receives that of the response. */
#include "common/proxy/fetch.h"

#include "common/http/fields.h"
#include "common/proxy/proxy_setup.h"
#include "common/proxy/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Interim responses (1xx) to one request. */
#define INTERIM_LIMIT 100

/* ---- for all stages ---- */

/* The large buffers are not touched before they are used. */
struct fetch *fetch_make(struct origin *origin)
{
    struct fetch *fetch = malloc(sizeof *fetch);

    if (fetch == NULL)
        return NULL;
    origin_connection_start(&fetch->connection);
    poll_pair_start(&fetch->poll_pair);
    response_writer_start(&fetch->writer);
    fetch->origin = origin;
    fetch->address = NULL;
    fetch->may_keep = fetch->sent_all = false;
    fetch->may_reuse = true;
    fetch->deadline = fetch->reset_by = 0;
    fetch->served = fetch->interims = 0;
    fetch->sent = 0;
    fetch->lines = (struct buffer){.data = fetch->space, .capacity = sizeof fetch->space};
    return fetch;
}

void fetch_release(struct fetch *fetch, const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    struct origin_connection *connection = &fetch->connection;

    if (!fetch->may_keep || !fetch->sent_all || fetch->interims > 0 ||
        !origin_connection_is_reusable(connection) || scoreboard_stopping(call->context->board))
        return;
    poll_pair_close(&fetch->poll_pair);
    origin_pool_put(proxy->pool, fetch->address, call->now.milliseconds, &connection->transport);
    connection->transport.socket = -1;
}

void fetch_free(struct fetch *fetch, const struct service_call *call)
{
    fetch_release(fetch, call);
    poll_pair_close(&fetch->poll_pair);
    origin_connection_close(&fetch->connection);
    free(fetch);
}

void fetch_renew_deadline(struct fetch *fetch, const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;

    fetch->deadline = call->now.milliseconds + proxy->timeout;
}

unsigned fetch_events(enum transfer transfer)
{
    return transfer == TRANSFER_READ    ? POLL_PAIR_READ
           : transfer == TRANSFER_WRITE ? POLL_PAIR_WRITE
                                        : 0;
}

enum service_progress fetch_wait(struct fetch *fetch, struct service_call *call, unsigned client,
                                 unsigned origin)
{
    int ours = call->client->socket, theirs = fetch->connection.transport.socket;

    call->deadline = fetch->deadline;
    if (client != 0 && call->client_deadline != 0 &&
        (origin == 0 || call->client_deadline < call->deadline))
        call->deadline = call->client_deadline;
    call->to_write = false;
    if ((client == 0 || origin == 0) && (client | origin) != (POLL_PAIR_READ | POLL_PAIR_WRITE)) {
        call->descriptor = client != 0 ? ours : theirs;
        call->to_write = (client | origin) == POLL_PAIR_WRITE;
    } else {
        call->descriptor = poll_pair_watch(&fetch->poll_pair, ours, client, theirs, origin);
    }
    return call->descriptor >= 0 ? SERVICE_WAITS : SERVICE_FAILED;
}

enum transfer fetch_send_lines(struct fetch *fetch, struct service_call *call)
{
    while (fetch->sent < fetch->lines.length) {
        struct text rest = {fetch->lines.data + fetch->sent, fetch->lines.length - fetch->sent};
        size_t before = rest.length;
        enum transfer transfer = origin_connection_send(&fetch->connection, &rest);
        fetch->sent += before - rest.length;
        if (transfer != TRANSFER_DONE)
            return transfer;
        fetch_renew_deadline(fetch, call);
    }
    fetch->sent = fetch->lines.length = 0;
    return TRANSFER_DONE;
}

/* ---- connecting ---- */

/* If responses are stored, the origin is not told the client's Host: it might write that into a
 * response, which other clients would get. */
static struct forwarded describe_client(const struct service_call *call, char *space,
                                        socklen_t size)
{
    const struct proxy *proxy = call->context->state;
    bool tls = call->context->scheme == SCHEME_HTTPS;
    struct forwarded forwarded = {
        .fields = proxy->forwarded,
        .append = proxy->forwarded_append,
        .scheme = tls ? TEXT("https") : TEXT("http"),
        .host = proxy->cache.shared == NULL ? call->request->host : (struct text){0},
    };
    union address peer;

    if (proxy->origin.length == 0 || proxy->forwarded == FORWARDED_OFF ||
        !transport_proven_peer(call->client, &peer))
        return forwarded;
    address_write(&peer, space, size);
    forwarded.address = text_of(space);
    return forwarded;
}

static bool write_head(struct fetch *fetch, const struct cache_lookup *lookup,
                       const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    char space[INET6_ADDRSTRLEN], rest[64];
    const struct forwarded forwarded = describe_client(call, space, sizeof space);
    struct rewrite rewrite = {
        .request = call->request,
        .authority = fetch->origin->authority,
        .via = text_of(proxy->name),
        .validates = lookup->validates,
        .keeps_connection = fetch->may_keep,
        .forwarded = proxy->origin.length > 0 ? &forwarded : NULL,
    };

    if (lookup->validates) {
        rewrite.etag = lookup->cached.etag;
        rewrite.modified = lookup->cached.modified_text;
    }
    if (cache_lookup_wants_rest(lookup)) {
        snprintf(rest, sizeof rest, "bytes=%" PRIu64 "-%" PRIu64, lookup->part.span.range.end,
                 lookup->wanted.end - 1);
        rewrite.rest = text_of(rest);
        rewrite.if_range = cache_part_tag(lookup->part.entry.record.fields);
    }
    fetch->lines = (struct buffer){.data = fetch->space, .capacity = sizeof fetch->space};
    fetch->sent = 0;
    if (call->request->method != METHOD_CONNECT)
        rewrite_request(&rewrite, &fetch->lines);
    return !fetch->lines.overflow;
}

static enum service_progress fail_to_connect(const struct fetch *fetch,
                                             const struct cache_lookup *lookup,
                                             struct service_call *call)
{
    const struct proxy *proxy = call->context->state;

    if (proxy->classroom)
        return stage_fail(call, 404, "The origin is not running.");
    if (fetch->origin->late)
        return stage_fail(call, 504, "The origin did not accept the connection in time.");
    if (cache_lookup_has_entry(lookup))
        return stage_fail(call, 504,
                          "The stored response is stale, and the origin cannot be asked.");
    return stage_fail(call, 502, "The origin does not accept connections.");
}

static enum service_progress try_next(struct fetch *fetch, const struct cache_lookup *lookup,
                                      struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    const union address *address;

    poll_pair_close(&fetch->poll_pair);
    fetch_renew_deadline(fetch, call);
    while ((address = find_origin_next_address(fetch->origin)) != NULL) {
        fetch->address = address;
        if (origin_connection_connect(&fetch->connection, address, proxy->tls))
            return stage_go_to(call, STAGE_CONNECT);
    }
    return fail_to_connect(fetch, lookup, call);
}

/* Only such a request goes over an idle connection: if the origin closes that first, the request
 * may be sent again (RFC 9110, section 9.2.2); and no byte of it can be taken for another request.
 */
static bool is_repeatable(const struct request *request)
{
    return request->framing == FRAMING_NONE &&
           (request->method == METHOD_GET || request->method == METHOD_HEAD ||
            request->method == METHOD_OPTIONS || request->method == METHOD_PUT ||
            request->method == METHOD_DELETE);
}

/* Returns true if the request authenticates its connection, not itself, as NTLM does. */
static bool authenticates_connection(const struct request *request)
{
    struct text value;

    if (!fields_has(request->fields, TEXT("Authorization")))
        return false;
    if (!fields_single(request->fields, TEXT("Authorization"), &value))
        return true;
    value.length = text_find(value, ' ');
    return !text_same(value, TEXT("Basic")) && !text_same(value, TEXT("Bearer")) &&
           !text_same(value, TEXT("Digest"));
}

/* The body that some origins send after HEAD would be taken for the next response. */
static void decide_to_keep(struct fetch *fetch, const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    const struct request *request = call->request;
    bool private = authenticates_connection(request);

    fetch->may_reuse &= is_repeatable(request) && !private;
    fetch->may_keep =
        request->framing == FRAMING_NONE && !private && request->method != METHOD_HEAD &&
        request->method != METHOD_CONNECT &&
        origin_pool_is_useful(proxy->pool, call->keeps_connection && request->keep_alive);
}

/* Takes an idle connection to one of the addresses. */
static bool reuse(struct fetch *fetch, const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    const struct address_list *addresses = &fetch->origin->addresses;
    unsigned reloads = atomic_load(&call->context->board->reloads);
    struct transport transport;

    for (int i = 0; fetch->may_reuse && i < addresses->count; i++)
        if (origin_pool_take(proxy->pool, &addresses->addresses[i], call->now.milliseconds, reloads,
                             &transport)) {
            fetch->address = &addresses->addresses[i];
            origin_connection_reuse(&fetch->connection, &transport);
            return true;
        }
    return false;
}

enum service_progress fetch_open(struct fetch *fetch, struct cache_lookup *lookup,
                                 struct service_call *call)
{
    cache_lookup_note_request(lookup, call->now);
    fetch->sent_all = false;
    decide_to_keep(fetch, call);
    if (!write_head(fetch, lookup, call))
        return stage_refuse(call, 431, "The head of the request is too long to be passed on.");
    fetch_renew_deadline(fetch, call);
    if (reuse(fetch, call))
        return stage_go_to(call, STAGE_SEND_HEAD);
    return try_next(fetch, lookup, call);
}

enum service_progress fetch_again(struct fetch *fetch, struct service_call *call)
{
    fetch->origin->tried = 0;
    poll_pair_close(&fetch->poll_pair);
    origin_connection_close(&fetch->connection);
    origin_connection_start(&fetch->connection);
    return stage_go_to(call, STAGE_OPEN);
}

enum service_progress fetch_whole(struct fetch *fetch, struct cache_lookup *lookup,
                                  struct service_call *call)
{
    cache_part_remove(lookup->cache, &lookup->part);
    cache_lookup_drop_part(lookup);
    return fetch_again(fetch, call);
}

enum service_progress fetch_connect(struct fetch *fetch, const struct cache_lookup *lookup,
                                    struct service_call *call)
{
    enum transfer transfer = origin_connection_connected(&fetch->connection);

    if (transfer == TRANSFER_WRITE)
        return fetch_wait(fetch, call, 0, POLL_PAIR_WRITE);
    if (transfer != TRANSFER_DONE)
        return try_next(fetch, lookup, call);
    fetch_renew_deadline(fetch, call);
    return stage_go_to(call,
                       call->request->method == METHOD_CONNECT ? STAGE_TUNNEL : STAGE_SEND_HEAD);
}

enum service_progress fetch_connect_late(struct fetch *fetch, const struct cache_lookup *lookup,
                                         struct service_call *call)
{
    fetch->origin->late = true;
    return try_next(fetch, lookup, call);
}

/* ---- the head of the request ---- */

enum service_progress fetch_send_head(struct fetch *fetch, struct service_call *call)
{
    enum transfer transfer = fetch_send_lines(fetch, call);

    if (transfer == TRANSFER_WRITE || transfer == TRANSFER_READ)
        return fetch_wait(fetch, call, 0, fetch_events(transfer));
    if (transfer == TRANSFER_DONE && call->request->framing != FRAMING_NONE)
        return stage_go_to(call, STAGE_SEND_BODY);
    fetch->sent_all = transfer == TRANSFER_DONE;
    stage_go_to(call, STAGE_AWAIT_HEAD);
    /* There is no response yet; but an origin that takes no more may have responded early. */
    return fetch->sent_all ? fetch_wait(fetch, call, 0, POLL_PAIR_READ) : SERVICE_CONTINUES;
}

/* ---- the head of the response ---- */

static void write_interim(struct fetch *fetch, const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    const struct parsed_response *response = &fetch->connection.response;
    struct buffer *lines = &fetch->writer.lines;

    response_writer_start(&fetch->writer);
    fetch->writer.bodiless = true;
    response_writer_add_status(&fetch->writer, call, response->status, response->reason);
    rewrite_fields(response->fields, (struct text){0}, lines);
    rewrite_via(response->minor, text_of(proxy->name), lines);
    buffer_add(lines, TEXT("\r\n"));
}

static enum service_progress take_interim(struct fetch *fetch, struct service_call *call)
{
    const struct stage_state *state = call->work;

    if (++fetch->interims > INTERIM_LIMIT)
        return stage_fail(call, 502,
                          "The origin does not come to an end with what it says before.");
    if (fetch->connection.response.status == 101)
        return stage_fail(call, 502, "The origin changes to a protocol that nobody has asked for.");
    if (call->request->minor == 0 || call->context->protocol == PROTOCOL_SIMPLE ||
        call->client->kind->one_request || fetch->served != 0)
        return SERVICE_CONTINUES;
    write_interim(fetch, call);
    fetch->interrupted = state->stage;
    call->client_deadline = 0;
    return stage_go_to(call, STAGE_SEND_INTERIM);
}

enum service_progress fetch_send_interim(struct fetch *fetch, struct cache_lookup *lookup,
                                         struct service_call *call)
{
    enum transfer transfer = TRANSFER_FAILED;

    if (!call->client_gone)
        transfer = response_writer_send(&fetch->writer, call);
    if (transfer == TRANSFER_DONE) {
        call->client_deadline = 0;
        fetch_renew_deadline(fetch, call);
        return stage_go_to(call, fetch->interrupted);
    }
    if (transfer != TRANSFER_READ && transfer != TRANSFER_WRITE)
        return SERVICE_FAILED;
    if (call->client_deadline == 0) /* the client has not read earlier bytes yet */
        call->client_deadline = call->now.milliseconds + call->context->write_timeout;
    collapse_unlock(&lookup->collapse); /* other requests must not wait for this client */
    return fetch_wait(fetch, call, fetch_events(transfer), 0);
}

/* Adds a Date to a response without one (RFC 9110, section 6.6.1). */
static void add_date(struct origin_connection *connection, int64_t now)
{
    size_t before = connection->lines.length;

    if (fields_has(connection->response.fields, TEXT("Date")))
        return;
    buffer_add(&connection->lines, TEXT("Date: "));
    date_write(&connection->lines, now);
    buffer_add(&connection->lines, TEXT("\r\n"));
    connection->response.fields.length += connection->lines.length - before;
}

/* Returns true if an origin has closed an idle connection at the moment at which the request was
 * sent; some say so with a 408. */
static bool was_closed_idle(const struct origin_connection *connection, enum transfer transfer)
{
    if (!connection->reused)
        return false;
    return transfer == TRANSFER_DONE ? connection->response.status == 408 : !connection->heard;
}

enum service_progress fetch_take_head(struct fetch *fetch, struct service_call *call,
                                      enum transfer transfer)
{
    struct origin_connection *connection = &fetch->connection;

    if (was_closed_idle(connection, transfer)) {
        fetch->may_reuse = false;
        return fetch_again(fetch, call);
    }

    if (transfer != TRANSFER_DONE)
        return stage_fail(call, 502,
                          connection->problem != NULL
                              ? connection->problem
                              : "The origin has ended the connection without a response.");
    fetch_renew_deadline(fetch, call);
    if (connection->response.status < 200)
        return take_interim(fetch, call);
    add_date(connection, call->now.seconds);
    return stage_go_to(call, STAGE_CHOOSE);
}

enum service_progress fetch_await_head(struct fetch *fetch, struct service_call *call)
{
    enum transfer transfer = origin_connection_head(&fetch->connection, call->request->method);

    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return fetch_wait(fetch, call, 0, fetch_events(transfer));
    return fetch_take_head(fetch, call, transfer);
}
