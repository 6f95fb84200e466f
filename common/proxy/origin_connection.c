/* Connects to an origin, sends requests, and reads responses. */
#include "common/proxy/origin_connection.h"

#include "common/http/fields.h"
#include "common/net/transport_plain.h"
#include "common/net/transport_tls.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

void origin_connection_start(struct origin_connection *upstream)
{
    memset(upstream, 0, offsetof(struct origin_connection, buffer));
    upstream->transport = (struct transport){.kind = &transport_plain, .socket = -1};
    upstream->lines =
        (struct buffer){.data = upstream->fields, .capacity = sizeof upstream->fields};
}

bool origin_connection_connect(struct origin_connection *upstream, const union address *address,
                               struct tls_client *tls)
{
    const int on = 1;
    int new = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    origin_connection_close(upstream);
    upstream->transport =
        (struct transport){.kind = tls != NULL ? &transport_tls_client : &transport_plain,
                           .socket = new,
                           .shared = tls,
                           .nonblocking = true};
    if (new < 0)
        return false;
    setsockopt(new, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    upstream->connecting = connect(new, &address->any, address_size(address)) != 0;
    return !upstream->connecting || errno == EINPROGRESS;
}

enum transfer origin_connection_connected(struct origin_connection *upstream)
{
    union address peer;
    socklen_t size = sizeof peer, error_size = sizeof(int);
    int error = 0;

    if (!upstream->connecting)
        return TRANSFER_DONE;
    if (getsockopt(upstream->transport.socket, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0)
        error = errno;
    if (error != 0) {
        errno = error;
        return TRANSFER_FAILED;
    }
    if (getpeername(upstream->transport.socket, &peer.any, &size) == 0)
        return TRANSFER_DONE;
    return errno == ENOTCONN ? TRANSFER_WRITE : TRANSFER_FAILED;
}

void origin_connection_reuse(struct origin_connection *upstream, const struct transport *transport)
{
    upstream->transport = *transport;
    upstream->reused = true;
}

/* An origin of HTTP/1.0 would have to say that it keeps the connection, and might not mean it. */
static bool says_close(const struct parsed_response *response)
{
    return response->minor == 0 || fields_list(response->fields, TEXT("Connection"), TEXT("close"));
}

bool origin_connection_is_reusable(const struct origin_connection *upstream)
{
    const struct parsed_response *response = &upstream->response;

    return upstream->transport.socket >= 0 && upstream->whole && !response->until_close &&
           response->status >= 200 && upstream->start == upstream->end &&
           !upstream->transport.pending && !says_close(response);
}

enum transfer origin_connection_send(struct origin_connection *upstream, struct text *bytes)
{
    size_t count;
    enum transfer transfer =
        upstream->transport.kind->write(&upstream->transport, *bytes, 0, &count);

    bytes->data += count;
    bytes->length -= count;
    if (transfer == TRANSFER_FAILED)
        upstream->problem = transport_tls_problem(&upstream->transport);
    return transfer;
}

static struct text received(const struct origin_connection *upstream)
{
    return (struct text){upstream->buffer + upstream->start, upstream->end - upstream->start};
}

static enum transfer read_bytes(struct origin_connection *upstream, char *to, size_t size,
                                size_t *count)
{
    struct transport *transport = &upstream->transport;
    enum transfer transfer = transport->kind->read(transport, to, size, count);

    upstream->heard |= *count > 0;
    /* Nothing is read after an encrypted session broke off. */
    return transfer == TRANSFER_PLAIN || transfer == TRANSFER_REFUSED ? TRANSFER_FAILED : transfer;
}

/* Reads more bytes behind those in the buffer. */
static enum transfer receive(struct origin_connection *upstream)
{
    size_t count;
    enum transfer transfer;

    if (upstream->start == upstream->end)
        upstream->start = upstream->end = 0;
    if (upstream->end == sizeof upstream->buffer) {
        struct text rest = received(upstream);
        memmove(upstream->buffer, rest.data, rest.length);
        upstream->start = 0;
        upstream->end = rest.length;
    }
    transfer = read_bytes(upstream, upstream->buffer + upstream->end,
                          sizeof upstream->buffer - upstream->end, &count);
    upstream->end += count;
    return transfer;
}

static void begin_body(struct origin_connection *upstream)
{
    const struct parsed_response *response = &upstream->response;

    body_reader_begin(&upstream->body_reader, response->framing, response->content_length,
                      UINT64_MAX);
    upstream->whole = response->framing == FRAMING_NONE && !response->until_close;
}

enum transfer origin_connection_head(struct origin_connection *upstream, enum method method)
{
    enum transfer transfer;
    size_t taken;

    if (upstream->response.status != 0)
        response_parser_start(&upstream->response);
    for (;;) {
        switch (response_parser_read(&upstream->response, method, received(upstream),
                                     &upstream->lines, &taken)) {
        case RESPONSE_PARSER_WHOLE:
            upstream->start += taken;
            begin_body(upstream);
            return TRANSFER_DONE;
        case RESPONSE_PARSER_REFUSED:
            upstream->problem = upstream->response.problem;
            return TRANSFER_FAILED;
        case RESPONSE_PARSER_PARTIAL:
            break;
        }
        transfer = receive(upstream);
        if (transfer != TRANSFER_DONE)
            return transfer;
    }
}

/* A body without framing ends with the connection. */
static enum transfer read_until_close(struct origin_connection *upstream, struct text *data)
{
    enum transfer transfer = TRANSFER_DONE;

    if (upstream->start == upstream->end)
        transfer = receive(upstream);
    *data = received(upstream);
    upstream->start = upstream->end;
    upstream->whole = transfer == TRANSFER_END;
    return transfer;
}

/* Reads bytes of a body that has a length, and no more. */
static enum transfer read_into(struct origin_connection *upstream, const struct buffer *room,
                               struct text *data)
{
    uint64_t left = upstream->body_reader.remaining;
    struct text bytes = {.data = room->data};
    enum transfer transfer = read_bytes(
        upstream, room->data, left < room->capacity ? (size_t)left : room->capacity, &bytes.length);

    if (bytes.length > 0)
        upstream->whole =
            body_reader_take(&upstream->body_reader, &bytes, data) == BODY_READER_WHOLE;
    return transfer == TRANSFER_END ? TRANSFER_FAILED : transfer; /* cut short */
}

enum transfer origin_connection_body(struct origin_connection *upstream, const struct buffer *room,
                                     struct text *data)
{
    *data = (struct text){0};
    if (!upstream->whole && upstream->start == upstream->end && room->capacity > 0 &&
        upstream->response.framing == FRAMING_LENGTH && upstream->body_reader.remaining > 0)
        return read_into(upstream, room, data);
    while (!upstream->whole) {
        struct text bytes = received(upstream);
        enum body_reader_progress progress;
        enum transfer transfer;

        if (upstream->response.until_close)
            return read_until_close(upstream, data);
        progress = body_reader_take(&upstream->body_reader, &bytes, data);
        upstream->start = upstream->end - bytes.length;
        if (progress == BODY_READER_REFUSED)
            return TRANSFER_FAILED;
        upstream->whole = progress == BODY_READER_WHOLE;
        if (data->length > 0)
            return TRANSFER_DONE;
        if (upstream->whole)
            break;
        transfer = receive(upstream);
        if (transfer != TRANSFER_DONE)
            return transfer == TRANSFER_END ? TRANSFER_FAILED : transfer; /* cut short */
    }
    return TRANSFER_END;
}

bool origin_connection_holds(const struct origin_connection *upstream)
{
    return upstream->start < upstream->end;
}

void origin_connection_close(struct origin_connection *upstream)
{
    if (upstream->transport.socket >= 0)
        upstream->transport.kind->close(&upstream->transport);
    upstream->transport.socket = -1;
}
