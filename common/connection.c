/* The state machine of a connection: reads requests, has a service answer them, sends responses. */
#include "common/connection.h"

#include "common/access_log.h"
#include "common/escape_injection.h"
#include "common/http/is_one_request.h"
#include "common/seats.h"
#include "common/trace.h"

#define LINGER_MILLISECONDS 2000
/* A client that reads less than this before the write deadline is cut off. */
#define PROGRESS_BYTES 16384
/* A client that is slower than this does not make progress if others need its seat. */
#define PACE_BYTES_PER_MILLISECOND 1
/* It may be ahead of that by so many milliseconds. */
#define PACE_AHEAD_LIMIT 5000
/* A connection that others wait for ends after this long even if more requests have come. */
#define PIPELINE_MILLISECONDS 50

/* So many connections at once are a crowd. */
#define CROWD 256

enum outcome {
    OUTCOME_GO_ON, /* in the state that is set now */
    OUTCOME_READ,
    OUTCOME_WRITE,
};

static void set_deadline(struct connection *connection, int milliseconds)
{
    connection->deadline = connection->now.milliseconds + milliseconds;
}

/* Begins to measure how fast the client is. */
static void begin_pace(struct connection *connection)
{
    connection->pace_from = connection->now.milliseconds;
    connection->pace_bytes = connection->sent + connection->received;
}

/* Begins to measure how fast the client reads. The bytes that its kernel has taken so far do not
 * show that it reads at all. */
static void begin_reading_pace(struct connection *connection)
{
    begin_pace(connection);
    connection->pace_bytes -= connection->transport.kind->unacknowledged(&connection->transport);
}

/* Starts the time for a request to arrive; sending does not prolong it. */
static void begin_request_time(struct connection *connection)
{
    begin_pace(connection);
    set_deadline(connection, connection->context->request_timeout);
    connection->request_deadline = connection->deadline;
}

static enum outcome go_to(struct connection *connection, enum connection_state state)
{
    connection->state = state;
    return OUTCOME_GO_ON;
}

static enum outcome flush_then(struct connection *connection, enum connection_state next)
{
    connection->next = next;
    connection->acknowledged = connection->sent;
    connection->blocked = false;
    begin_pace(connection);
    set_deadline(connection, connection->context->write_timeout);
    return go_to(connection, CONNECTION_SENDING);
}

static enum outcome cut_off(struct connection *connection)
{
    connection->tally.errors++;
    return go_to(connection, CONNECTION_ENDED);
}

static void note_progress(struct connection *connection, uint64_t count)
{
    connection->tally.bytes += count;
    connection->step_bytes += count;
    connection->sent += count;
}

/* Decides what to do after a transfer that moved nothing. */
static enum outcome wait_for(struct connection *connection, enum transfer transfer)
{
    switch (transfer) {
    case TRANSFER_READ:
        return OUTCOME_READ;
    case TRANSFER_WRITE:
    case TRANSFER_QUEUED:
        return OUTCOME_WRITE;
    case TRANSFER_REFUSED: /* the client loses the alert if its input is not read */
        connection->client_closes = false;
        return go_to(connection, CONNECTION_FINISHING);
    default:
        return go_to(connection, CONNECTION_ENDED);
    }
}

static void note(const struct connection *connection, enum trace_what what, uint64_t value)
{
    trace_note(connection->context->trace, what, connection->number, value);
}

/* Appends what the client has sent to the input, which must have room. */
static enum transfer receive(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    size_t room = exchange->input_size - exchange->input_end, count;
    bool waits = connection->transport.patient;
    enum transfer transfer;

    if (waits)
        note(connection, TRACE_WAIT, 0);
    transfer = connection->transport.kind->read(
        &connection->transport, exchange->input + exchange->input_end, room, &count);
    if (waits)
        note(connection, TRACE_READ, 0);
    exchange->input_end += count;
    connection->received += count;
    connection->drained = count < room && !connection->transport.pending;
    if (count > 0 && connection->idle) {
        connection->idle = false;
        begin_request_time(connection);
    }
    return transfer;
}

/* ---- reading a request ---- */

/* Responds with an error page, and reads no further request. */
static enum outcome refuse(struct connection *connection, int status, const char *problem)
{
    connection->closing = true;
    connection->client_closes = false;
    connection->has_response = true;
    response_start(&connection->exchange->response);
    response_refuse(&connection->exchange->response, status, problem);
    return go_to(connection, CONNECTION_RESPONDING);
}

static enum outcome begin_body(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct request *request = &exchange->request;

    body_reader_start(&exchange->body_reader, request);
    exchange->body_start = exchange->input_start;
    begin_request_time(connection);
    if (!request->expects_continue || exchange_received(exchange).length > 0)
        return go_to(connection, CONNECTION_DISCARDING);
    if (request->method > METHOD_OPTIONS) {
        connection->closing = true; /* the response does not depend on the body */
        connection->client_closes = false;
        return go_to(connection, CONNECTION_RESPONDING);
    }
    if (request->content_length > BODY_READER_LIMIT)
        return go_to(connection, CONNECTION_DISCARDING);
    if (!exchange_put_continue(exchange))
        return cut_off(connection);
    return flush_then(connection, CONNECTION_DISCARDING);
}

/* When the server stops, or others wait for the end of the connection, the last response in the
 * pipeline announces the end. Others do not wait long for a pipeline that never ends. */
static bool is_last(const struct connection *connection)
{
    bool yields = connection->yields_from != 0;

    if (exchange_received(connection->exchange).length == 0)
        return yields || scoreboard_stopping(connection->context->board);
    return yields &&
           connection->now.milliseconds - connection->yields_from >= PIPELINE_MILLISECONDS;
}

static enum outcome begin_call(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    exchange->body_start = exchange->input_start;
    exchange->call = (struct service_call){
        .context = connection->context,
        .request = &exchange->request,
        .client = &connection->transport,
        .response = &exchange->response,
        .keeps_connection = !connection->closing && !is_last(connection),
    };
    response_start(&exchange->response);
    connection->in_call = true;
    connection->acknowledged = connection->sent;
    begin_pace(connection);
    return go_to(connection, CONNECTION_IN_SERVICE);
}

/* Adapts the request to a transport that carries a single request. */
static void adapt_request(struct connection *connection)
{
    connection->client_closes = false; /* the transport must be finished: that sends the response */
    connection->exchange->request.expects_continue = false; /* the body is here already */
}

static enum outcome begin_request(struct connection *connection, size_t head)
{
    const struct transport_kind *kind = connection->transport.kind;
    struct exchange *exchange = connection->exchange;
    struct request *request = &exchange->request;

    if (request->expects_continue && exchange_has_output(exchange)) {
        request_start(request); /* earlier responses leave first: then there is room for another */
        return flush_then(connection, CONNECTION_READING);
    }
    if (request->framing != FRAMING_NONE &&
        exchange->input_size - exchange->input_start - head < EXCHANGE_BODY_ROOM) {
        size_t behind = exchange_received(exchange).length - head;
        if (!exchange_move_input(exchange,
                                 EXCHANGE_BODY_ROOM > behind ? EXCHANGE_BODY_ROOM - behind : 0))
            return refuse(connection, 503, "The server has no memory for this request.");
        request_start(request); /* the head has moved: parse it again */
        request_read(request, exchange_received(exchange), &head);
    }
    escape_injection_check(request->path);
    exchange->input_start += head;
    connection->client_closes = !request->keep_alive;
    connection->has_response = false;
    if (kind->one_request)
        adapt_request(connection);
    if (kind->no_tunnel != NULL && request->method == METHOD_CONNECT)
        return refuse(connection, 501, kind->no_tunnel);
    if (connection->context->service->step != NULL)
        return begin_call(connection);
    if (request->framing != FRAMING_NONE)
        return begin_body(connection);
    return go_to(connection, CONNECTION_RESPONDING);
}

static enum outcome read_head(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    for (;;) {
        struct text bytes = exchange_received(exchange);
        enum transfer transfer;
        size_t head;

        if (bytes.length > 0) {
            switch (request_read(&exchange->request, bytes, &head)) {
            case REQUEST_WHOLE:
                return begin_request(connection, head);
            case REQUEST_REFUSED:
                return refuse(connection, exchange->request.status, exchange->request.problem);
            case REQUEST_PARTIAL:
                break;
            }
        }
        if (exchange_has_output(exchange))
            return flush_then(connection, CONNECTION_READING);
        if (exchange->input_end == exchange->input_size && !exchange_move_input(exchange, 1))
            return refuse(connection, 503, "The server has no memory for this request.");
        transfer = receive(connection);
        if (transfer == TRANSFER_PLAIN)
            return refuse(connection, 400, "This port speaks HTTPS, and you speak HTTP.");
        if (transfer != TRANSFER_DONE)
            return wait_for(connection, transfer);
    }
}

static enum outcome discard_body(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    for (;;) {
        struct text bytes = exchange_received(exchange);
        enum body_reader_progress progress = body_reader_read(&exchange->body_reader, &bytes);
        enum transfer transfer;

        exchange->input_start = exchange->input_end - bytes.length;
        if (progress == BODY_READER_WHOLE)
            return go_to(connection, CONNECTION_RESPONDING);
        if (progress == BODY_READER_REFUSED)
            return refuse(connection, exchange->body_reader.status, exchange->body_reader.problem);
        if (exchange_has_output(exchange))
            return flush_then(connection, CONNECTION_DISCARDING);
        /* The head must stay where it is: the request consists of slices of it. */
        exchange->input_start = exchange->input_end = exchange->body_start;
        transfer = receive(connection);
        if (transfer != TRANSFER_DONE)
            return wait_for(connection, transfer);
    }
}

/* ---- a service that works in steps ---- */

static void end_call(struct connection *connection)
{
    struct service_call *call = &connection->exchange->call;

    if (call->work != NULL)
        connection->context->service->end(call);
    connection->in_call = false;
    if (!call->keeps_connection) {
        connection->closing = true;
        connection->client_closes = false;
    }
}

/* The service broke off its response. If nothing has left, another response says why. */
static enum outcome replace_response(struct connection *connection)
{
    struct transport *transport = &connection->transport;
    struct response *response = &connection->exchange->response;
    int status = response->status;
    bool too_long = transport->overflowed;
    uint64_t recalled;

    if (!transport->kind->recall(transport, &recalled))
        return cut_off(connection);
    connection->tally.bytes -= recalled; /* it may wrap; the sum on the scoreboard does not */
    if (connection->in_call)
        end_call(connection);
    response_end(response);
    response_start(response);
    response->status = status;
    if (too_long)
        transport->kind->refuse_long(transport, response);
    else
        response_refuse(response, 502, connection->context->service->broken_off);
    connection->has_response = true;
    return go_to(connection, CONNECTION_RESPONDING);
}

/* Does what the service asks for. */
static enum outcome follow(struct connection *connection, enum service_progress progress)
{
    struct exchange *exchange = connection->exchange;
    struct service_call *call = &exchange->call;

    switch (progress) {
    case SERVICE_WAITS:
        connection->descriptor = call->descriptor;
        connection->deadline = call->deadline;
        return call->to_write ? OUTCOME_WRITE : OUTCOME_READ;
    case SERVICE_NEEDS_FLUSH:
        return flush_then(connection, CONNECTION_IN_SERVICE);
    case SERVICE_FAILED:
    case SERVICE_CONTINUES:
        break;
    case SERVICE_RESPONDS:
        connection->has_response = true;
        end_call(connection);
        return go_to(connection, CONNECTION_RESPONDING);
    case SERVICE_DONE:
        exchange->body_bytes = call->body_bytes;
        end_call(connection);
        connection->closing |=
            connection->client_closes || connection->context->protocol == PROTOCOL_SIMPLE;
        return go_to(connection, CONNECTION_RESPONDED);
    }
    return replace_response(connection);
}

/* Lends the service the input behind the head. What it leaves is read as the next request. */
static void lend_input(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct service_call *call = &exchange->call;

    call->now = connection->now;
    call->received = exchange_received(exchange);
    call->input_space = exchange->input + exchange->body_start;
    call->input_space_size = exchange->input_size - exchange->body_start;
    call->output_pending = exchange_has_output(exchange);
    call->sent = call->taken = 0;
    call->awaits_client = false;
}

static void reclaim_input(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct text *rest = &exchange->call.received;

    exchange->input_start = (size_t)(rest->data - exchange->input);
    exchange->input_end = exchange->input_start + rest->length;
    connection->now = exchange->call.now;
    note_progress(connection, exchange->call.sent);
    connection->received += exchange->call.taken;
}

static enum outcome run_service(struct connection *connection)
{
    enum service_progress progress;

    lend_input(connection);
    progress = connection->context->service->step(&connection->exchange->call);
    reclaim_input(connection);
    if (connection->transport.overflowed)
        progress = SERVICE_FAILED;
    return follow(connection, progress);
}

/* ---- writing the response ---- */

static enum persistence persistence(const struct connection *connection)
{
    if (connection->closing)
        return PERSISTENCE_CLOSE;
    return connection->exchange->request.minor == 0 ? PERSISTENCE_KEEP_ALIVE : PERSISTENCE_IMPLIED;
}

/* Appends the head to the output; false if there is no room. */
static bool put_head(struct connection *connection)
{
    const struct service_context *context = connection->context;
    struct buffer *output = &connection->exchange->output;
    size_t before = output->length;

    do {
        output->overflow = false;
        output->length = before;
        response_write_head(&connection->exchange->response, persistence(connection),
                            context->protocol == PROTOCOL_SIMPLE, connection->now, output);
        if (!output->overflow)
            return true;
        output->length = before;
    } while (exchange_grow_output(connection->exchange));
    output->overflow = false;
    return false;
}

/* Returns true if the transport can carry the response whose head is in the output. */
static bool response_fits(const struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;
    bool bodiless = exchange->part > exchange->response.range_count;
    uint64_t body = bodiless ? 0 : response_length(&exchange->response);

    return exchange->output.length + body <= connection->transport.response_limit;
}

/* Replaces a response that does not fit by an error page, an error page by a bare status, and a
 * bare status by nothing. */
static enum outcome shorten_response(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct response *response = &exchange->response;

    exchange->output.length = 0;
    exchange->portion = 0;
    if (response->bare) {
        connection->tally.dropped++;
        return go_to(connection, CONNECTION_ENDED);
    }
    if (response->status < 400)
        connection->transport.kind->refuse_long(&connection->transport, response);
    else
        response->bare = true;
    return go_to(connection, CONNECTION_RESPONDING);
}

static void fill_in_response(const struct service_context *context, struct exchange *exchange,
                             struct moment now)
{
    const struct request *request = &exchange->request;
    struct response *response = &exchange->response;

    response_start(response);
    if (response_refuse_scheme(response, request, context->scheme))
        return;
    context->service->answer(context, request, now, response);
    response_apply_conditions(response, request, now);
}

static enum outcome respond(struct connection *connection)
{
    const struct service_context *context = connection->context;
    struct exchange *exchange = connection->exchange;
    size_t before = exchange->output.length;

    if (!connection->has_response) {
        fill_in_response(context, exchange, connection->now);
        connection->has_response = true;
    }
    if (connection->client_closes || context->protocol == PROTOCOL_SIMPLE || is_last(connection))
        connection->closing = true;
    if (!put_head(connection)) {
        if (exchange_has_output(exchange))
            return flush_then(connection, CONNECTION_RESPONDING);
        return cut_off(connection); /* there is no memory for the head */
    }
    exchange_begin_portions(exchange);
    if (!response_fits(connection))
        return shorten_response(connection);
    if (!exchange_put_small_body(exchange)) {
        /* The file has shrunk. Nothing of the response has left: an error can replace it. */
        exchange->output.length = before;
        exchange->portion = 0;
        response_refuse(&exchange->response, 503, "The document is being changed.");
        return go_to(connection, CONNECTION_RESPONDING);
    }
    if (exchange->portion > 0 || exchange_has_parts(exchange))
        return flush_then(connection, CONNECTION_RESPONDED);
    return go_to(connection, CONNECTION_RESPONDED);
}

static void end_response(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    connection->has_response = false;
    connection->step_requests++;
    connection->tally.requests++;
    connection->tally.errors += exchange->response.status >= 400;
    if (connection->context->log != NULL)
        access_log_response(connection->context->log, &connection->transport, &exchange->request,
                            exchange->response.status, exchange->body_bytes, connection->now);
    response_end(&exchange->response);
    request_start(&exchange->request);
    if (exchange_received(exchange).length == 0)
        exchange_free_input(exchange);
}

static enum outcome end_request(struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;

    end_response(connection);
    if (connection->closing)
        return flush_then(connection, CONNECTION_FINISHING);
    begin_request_time(connection); /* the next request may be here already */
    if (connection->context->protocol != PROTOCOL_PIPELINED ||
        exchange_received(exchange).length == 0)
        return flush_then(connection, CONNECTION_READING);
    return go_to(connection, CONNECTION_READING);
}

/* ---- sending ---- */

/* Returns true if more follows at once: another part, or the end of the connection, which then
 * leaves in the same packet. */
static bool is_followed(const struct connection *connection)
{
    return exchange_has_parts(connection->exchange) || connection->next == CONNECTION_FINISHING;
}

static enum transfer send_output(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct text rest = {exchange->output.data + exchange->output_sent,
                        exchange->output.length - exchange->output_sent};
    uint64_t more = exchange->portion + is_followed(connection);
    enum transfer transfer;
    size_t count;

    connection->transport.rests = more == 0 && connection->next == CONNECTION_READING &&
                                  exchange_received(exchange).length == 0;
    transfer = connection->transport.kind->write(&connection->transport, rest, more, &count);
    note_progress(connection, count);
    exchange->output_sent += count;
    if (!exchange_has_output(exchange))
        exchange->output.length = exchange->output_sent = 0;
    return transfer;
}

static enum transfer send_portion(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct body *body = &exchange->response.body;
    struct transport *transport = &connection->transport;
    enum transfer transfer;
    size_t count;

    if (body->kind == BODY_FILE) {
        uint64_t sound = exchange_sound_portion(exchange);
        if (sound == 0)
            return TRANSFER_FAILED; /* no damaged byte leaves */
        transfer = transport->kind->send_file(transport, body->file, body->start + exchange->offset,
                                              sound, &count);
    } else {
        struct text rest = {body->memory + exchange->offset, (size_t)exchange->portion};
        transfer = transport->kind->write(transport, rest, is_followed(connection), &count);
    }
    note_progress(connection, count);
    exchange_take_portion(exchange, count);
    return transfer;
}

/* If the next state reads and the input was drained, a read before the next poll would find
 * nothing. */
static enum outcome after_sending(struct connection *connection)
{
    connection->state = connection->next;
    connection->deadline = connection->request_deadline;
    if (connection->next != CONNECTION_READING ||
        exchange_received(connection->exchange).length > 0)
        return connection->step_requests < STEP_REQUESTS_LIMIT ? OUTCOME_GO_ON : OUTCOME_WRITE;
    exchange_free_output(connection->exchange);
    connection->idle = true;
    begin_pace(connection);
    set_deadline(connection, connection->context->idle_timeout);
    if (connection->drained)
        return OUTCOME_READ;
    return connection->step_requests < STEP_REQUESTS_LIMIT ? OUTCOME_GO_ON : OUTCOME_WRITE;
}

static enum outcome send_response(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    for (;;) {
        enum transfer transfer;

        if (connection->step_bytes >= STEP_BYTES_LIMIT)
            return OUTCOME_WRITE;
        if (exchange_has_output(exchange))
            transfer = send_output(connection);
        else if (exchange->portion > 0)
            transfer = send_portion(connection);
        else if (exchange_has_parts(exchange)) {
            exchange_put_part(exchange);
            continue;
        } else {
            return after_sending(connection);
        }
        if (transfer == TRANSFER_END || transfer == TRANSFER_FAILED)
            return cut_off(connection); /* the file has shrunk, or the client left */
        if (transfer == TRANSFER_WRITE && !connection->blocked) {
            connection->blocked = true;
            begin_reading_pace(connection);
        }
        if (transfer != TRANSFER_DONE)
            return wait_for(connection, transfer);
    }
}

/* ---- the end ---- */

/* Closing a socket with unread input resets the connection: the client may lose the response. */
static enum outcome finish(struct connection *connection)
{
    if (connection->client_closes && connection->drained &&
        exchange_received(connection->exchange).length == 0)
        return go_to(connection, CONNECTION_ENDED);
    connection->transport.kind->finish(&connection->transport);
    connection->idle = false; /* what comes now is no request, and gets no further time */
    begin_pace(connection);
    set_deadline(connection, LINGER_MILLISECONDS);
    return go_to(connection, CONNECTION_LINGERING);
}

static enum outcome linger(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    enum transfer transfer;

    do {
        exchange->input_start = exchange->input_end = 0;
        transfer = receive(connection);
        connection->step_bytes += exchange->input_end;
        if (connection->step_bytes >= STEP_BYTES_LIMIT)
            return OUTCOME_READ;
    } while (transfer == TRANSFER_DONE);
    return wait_for(connection, transfer);
}

/* ---- the machine ---- */

/* A message that is not one whole request is dropped without a response. */
static void open_transport(struct connection *connection)
{
    struct transport *transport = &connection->transport;
    struct text request;
    bool good = transport->kind->open(transport, &request);

    connection->closing = transport->kind->one_request;
    if (good && (!transport->kind->one_request || is_one_request(request)))
        return;
    connection->tally.dropped++;
    connection->state = CONNECTION_ENDED;
}

void connection_open(struct connection *connection, const struct service_context *context,
                     int socket, struct moment now)
{
    *connection = (struct connection){
        .transport = {.kind = context->transport, .socket = socket, .shared = context->tls},
        .context = context,
        .state = CONNECTION_READING,
        .now = now,
        .descriptor = socket,
    };
    begin_request_time(connection);
    if (atomic_load_explicit(&context->board->active, memory_order_relaxed) >= CROWD)
        transport_expect_crowd(&connection->transport);
    open_transport(connection);
}

void connection_lend(struct connection *connection, struct exchange *exchange)
{
    connection->exchange = exchange;
    exchange_start(exchange);
}

static void settle(struct connection *connection)
{
    const struct transport_kind *kind = connection->transport.kind;

    if (kind->settle != NULL)
        kind->settle(&connection->transport);
}

struct exchange *connection_reclaim(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    bool empty = connection->state == CONNECTION_LINGERING ||
                 (connection->state == CONNECTION_READING &&
                  exchange_received(exchange).length == 0 && !exchange_has_output(exchange));

    if (!empty)
        return NULL;
    settle(connection);
    response_end(&exchange->response); /* of one that was cut off */
    exchange_end(exchange);
    connection->exchange = NULL;
    return exchange;
}

/* Notes in the trace what a connection does in its present state. */
static void note_state(const struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_READING:
    case CONNECTION_DISCARDING:
        if (!connection->transport.patient) /* receive() waits first */
            note(connection, TRACE_READ, 0);
        break;
    case CONNECTION_IN_SERVICE:
    case CONNECTION_RESPONDING:
        note(connection, TRACE_RESPOND, 0);
        break;
    case CONNECTION_SENDING:
        note(connection, TRACE_WRITE, (uint64_t)connection->exchange->response.status);
        break;
    case CONNECTION_FINISHING:
    case CONNECTION_LINGERING:
        note(connection, TRACE_CLOSE, connection->sent);
        break;
    default:
        break;
    }
}

enum need connection_step(struct connection *connection)
{
    static enum outcome (*const steps[CONNECTION_ENDED])(struct connection *) = {
        [CONNECTION_READING] = read_head,     [CONNECTION_DISCARDING] = discard_body,
        [CONNECTION_RESPONDING] = respond,    [CONNECTION_RESPONDED] = end_request,
        [CONNECTION_SENDING] = send_response, [CONNECTION_FINISHING] = finish,
        [CONNECTION_LINGERING] = linger,      [CONNECTION_IN_SERVICE] = run_service,
    };

    connection->step_bytes = 0;
    connection->step_requests = 0;
    connection->descriptor = connection->transport.socket;
    while (connection->state != CONNECTION_ENDED) {
        if (connection->context->trace != NULL)
            note_state(connection);
        switch (steps[connection->state](connection)) {
        case OUTCOME_GO_ON:
            break;
        case OUTCOME_READ:
            return NEED_READ;
        case OUTCOME_WRITE:
            return NEED_WRITE;
        }
    }
    return NEED_NOTHING;
}

/* Returns true if the client has read enough since the last deadline. The kernel buffers far more
 * than it sends at once: bytes that were acknowledged count, not bytes that were written. */
static bool client_reads(struct connection *connection)
{
    struct transport *transport = &connection->transport;
    uint64_t acknowledged = connection->sent - transport->kind->unacknowledged(transport);

    if (acknowledged < connection->acknowledged + PROGRESS_BYTES)
        return false;
    connection->acknowledged = acknowledged;
    return true;
}

static void expire_sending(struct connection *connection)
{
    if (client_reads(connection)) {
        set_deadline(connection, connection->context->write_timeout);
        return;
    }
    connection->transport.kind->abandon(&connection->transport);
    cut_off(connection);
}

/* A client that reads slowly is judged as in expire_sending(); the service decides the rest. */
static void expire_service(struct connection *connection)
{
    struct service_call *call = &connection->exchange->call;
    int64_t now = connection->now.milliseconds;
    enum service_progress progress;

    if (now < call->deadline) {
        connection->transport.kind->abandon(&connection->transport); /* the server stops */
        cut_off(connection);
        return;
    }
    if (!call->client_gone && call->client_deadline != 0 && now >= call->client_deadline) {
        if (client_reads(connection)) {
            call->client_deadline = now + connection->context->write_timeout;
            return;
        }
        connection->transport.kind->abandon(&connection->transport);
        call->client_gone = true;
        return;
    }
    lend_input(connection);
    progress = connection->context->service->expire(call);
    reclaim_input(connection);
    follow(connection, progress);
}

void connection_expire(struct connection *connection)
{
    bool in_request = exchange_received(connection->exchange).length > 0;

    if (connection->state == CONNECTION_IN_SERVICE)
        expire_service(connection);
    else if (connection->state == CONNECTION_DISCARDING)
        refuse(connection, 408, "The body of the request did not come in time.");
    else if (connection->state == CONNECTION_READING && in_request)
        refuse(connection, 408, "The head of the request did not come in time.");
    else if (connection->state == CONNECTION_SENDING)
        expire_sending(connection);
    else
        connection->state = CONNECTION_ENDED;
}

void connection_close(struct connection *connection)
{
    note(connection, TRACE_CLOSE, connection->sent);
    settle(connection);
    if (connection->exchange != NULL) {
        if (connection->in_call)
            end_call(connection);
        response_end(&connection->exchange->response);
        exchange_end(connection->exchange);
    }
    connection->transport.kind->close(&connection->transport);
}

/* ---- giving way ---- */

void connection_yield(struct connection *connection, bool needed)
{
    if (!needed)
        connection->yields_from = 0;
    else if (connection->yields_from == 0)
        connection->yields_from = connection->now.milliseconds;
}

/* The lower the rank of a connection that waits, the sooner it gives its seat to another. */
enum rank {
    RANK_NONE,
    RANK_IDLE,
    RANK_HEAD,
    RANK_TRANSFER,
};

/* A service that waits for others than the client keeps the connection. */
static enum rank rank_of(const struct connection *connection, enum need need)
{
    switch (connection->state) {
    case CONNECTION_READING:
        return connection->idle ? RANK_IDLE : RANK_HEAD;
    case CONNECTION_LINGERING:
        return RANK_IDLE;
    case CONNECTION_DISCARDING:
    case CONNECTION_SENDING:
        return RANK_TRANSFER;
    case CONNECTION_IN_SERVICE:
        return connection->exchange->call.awaits_client ||
                       (need == NEED_WRITE &&
                        connection->descriptor == connection->transport.socket)
                   ? RANK_TRANSFER
                   : RANK_NONE;
    default:
        return RANK_NONE;
    }
}

int64_t connection_standing(const struct connection *connection, enum need need)
{
    enum rank rank = rank_of(connection, need);

    if (rank == RANK_NONE)
        return 0;
    return (int64_t)rank << SEATS_SINCE_BITS | connection->pace_from;
}

/* Bytes that the client has not acknowledged yet do not count as read. A client that is fast enough
 * is measured again from now on. For as long as it was ahead of its pace it may do nothing: a lost
 * packet alone can stop it for a second. In a crowd only clients that seem to read get this time:
 * the kernels of the others take the first bytes, too. */
static bool keeps_pace(struct connection *connection)
{
    struct transport *transport = &connection->transport;
    uint64_t moved = connection->sent + connection->received - connection->pace_bytes;
    uint64_t pending = transport->kind->unacknowledged(transport);
    int64_t time = connection->now.milliseconds - connection->pace_from;
    int64_t ahead = (int64_t)(moved - pending) / PACE_BYTES_PER_MILLISECOND - time;

    if (time < 0)
        return true; /* it may still do nothing */
    if (ahead < 0)
        return false;
    begin_reading_pace(connection);
    if (transport_has_reader(transport))
        connection->pace_from += ahead < PACE_AHEAD_LIMIT ? ahead : PACE_AHEAD_LIMIT;
    return true;
}

bool connection_give_way(struct connection *connection)
{
    struct transport *transport = &connection->transport;

    if (connection->state == CONNECTION_READING && transport->kind->has_input(transport))
        return false;
    if (connection->state == CONNECTION_READING || connection->state == CONNECTION_LINGERING) {
        connection->state = CONNECTION_ENDED;
        return true;
    }
    if (keeps_pace(connection))
        return false;
    if (connection->state != CONNECTION_DISCARDING)
        transport->kind->abandon(transport);
    cut_off(connection);
    return true;
}
