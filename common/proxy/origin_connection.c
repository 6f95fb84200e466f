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

void origin_connection_start(struct origin_connection *connection)
{
    memset(connection, 0, offsetof(struct origin_connection, buffer));
    connection->transport = (struct transport){.kind = &transport_plain, .socket = -1};
    connection->lines =
        (struct buffer){.data = connection->fields, .capacity = sizeof connection->fields};
}

bool origin_connection_connect(struct origin_connection *connection, const union address *address,
                               struct tls_client *tls)
{
    const int on = 1;
    int new = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    origin_connection_close(connection);
    connection->transport =
        (struct transport){.kind = tls != NULL ? &transport_tls_client : &transport_plain,
                           .socket = new,
                           .shared = tls,
                           .nonblocking = true};
    if (new < 0)
        return false;
    setsockopt(new, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->connecting = connect(new, &address->any, address_size(address)) != 0;
    return !connection->connecting || errno == EINPROGRESS;
}

enum transfer origin_connection_connected(struct origin_connection *connection)
{
    union address peer;
    socklen_t size = sizeof peer, error_size = sizeof(int);
    int error = 0;

    if (!connection->connecting)
        return TRANSFER_DONE;
    if (getsockopt(connection->transport.socket, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0)
        error = errno;
    if (error != 0) {
        errno = error;
        return TRANSFER_FAILED;
    }
    if (getpeername(connection->transport.socket, &peer.any, &size) == 0)
        return TRANSFER_DONE;
    return errno == ENOTCONN ? TRANSFER_WRITE : TRANSFER_FAILED;
}

void origin_connection_reuse(struct origin_connection *connection,
                             const struct transport *transport)
{
    connection->transport = *transport;
    connection->reused = true;
}

/* An origin of HTTP/1.0 would have to say that it keeps the connection, and might not mean it. */
static bool says_close(const struct parsed_response *response)
{
    return response->minor == 0 || fields_list(response->fields, TEXT("Connection"), TEXT("close"));
}

bool origin_connection_is_reusable(const struct origin_connection *connection)
{
    const struct parsed_response *response = &connection->response;

    return connection->transport.socket >= 0 && connection->whole && !response->until_close &&
           response->status >= 200 && connection->start == connection->end &&
           !connection->transport.pending && !says_close(response);
}

enum transfer origin_connection_send(struct origin_connection *connection, struct text *bytes)
{
    size_t count;
    enum transfer transfer =
        connection->transport.kind->write(&connection->transport, *bytes, 0, &count);

    bytes->data += count;
    bytes->length -= count;
    if (transfer == TRANSFER_FAILED)
        connection->problem = transport_tls_problem(&connection->transport);
    return transfer;
}

static struct text received(const struct origin_connection *connection)
{
    return (struct text){connection->buffer + connection->start,
                         connection->end - connection->start};
}

static enum transfer read_bytes(struct origin_connection *connection, char *to, size_t size,
                                size_t *count)
{
    struct transport *transport = &connection->transport;
    enum transfer transfer = transport->kind->read(transport, to, size, count);

    connection->heard |= *count > 0;
    /* Nothing is read after an encrypted session broke off. */
    return transfer == TRANSFER_PLAIN || transfer == TRANSFER_REFUSED ? TRANSFER_FAILED : transfer;
}

/* Reads more bytes behind those in the buffer. */
static enum transfer receive(struct origin_connection *connection)
{
    size_t count;
    enum transfer transfer;

    if (connection->start == connection->end)
        connection->start = connection->end = 0;
    if (connection->end == sizeof connection->buffer) {
        struct text rest = received(connection);
        memmove(connection->buffer, rest.data, rest.length);
        connection->start = 0;
        connection->end = rest.length;
    }
    transfer = read_bytes(connection, connection->buffer + connection->end,
                          sizeof connection->buffer - connection->end, &count);
    connection->end += count;
    return transfer;
}

static void begin_body(struct origin_connection *connection)
{
    const struct parsed_response *response = &connection->response;

    body_reader_begin(&connection->body_reader, response->framing, response->content_length,
                      UINT64_MAX);
    connection->whole = response->framing == FRAMING_NONE && !response->until_close;
}

enum transfer origin_connection_head(struct origin_connection *connection, enum method method)
{
    enum transfer transfer;
    size_t taken;

    if (connection->response.status != 0)
        response_parser_start(&connection->response);
    for (;;) {
        switch (response_parser_read(&connection->response, method, received(connection),
                                     &connection->lines, &taken)) {
        case RESPONSE_PARSER_WHOLE:
            connection->start += taken;
            begin_body(connection);
            return TRANSFER_DONE;
        case RESPONSE_PARSER_REFUSED:
            connection->problem = connection->response.problem;
            return TRANSFER_FAILED;
        case RESPONSE_PARSER_PARTIAL:
            break;
        }
        transfer = receive(connection);
        if (transfer != TRANSFER_DONE)
            return transfer;
    }
}

/* A body without framing ends with the connection. */
static enum transfer read_until_close(struct origin_connection *connection, struct text *data)
{
    enum transfer transfer = TRANSFER_DONE;

    if (connection->start == connection->end)
        transfer = receive(connection);
    *data = received(connection);
    connection->start = connection->end;
    connection->whole = transfer == TRANSFER_END;
    return transfer;
}

/* Reads bytes of a body that has a length, and no more. */
static enum transfer read_into(struct origin_connection *connection, const struct buffer *room,
                               struct text *data)
{
    uint64_t left = connection->body_reader.remaining;
    struct text bytes = {.data = room->data};
    enum transfer transfer =
        read_bytes(connection, room->data, left < room->capacity ? (size_t)left : room->capacity,
                   &bytes.length);

    if (bytes.length > 0)
        connection->whole =
            body_reader_take(&connection->body_reader, &bytes, data) == BODY_READER_WHOLE;
    return transfer == TRANSFER_END ? TRANSFER_FAILED : transfer; /* cut short */
}

enum transfer origin_connection_body(struct origin_connection *connection,
                                     const struct buffer *room, struct text *data)
{
    *data = (struct text){0};
    if (!connection->whole && connection->start == connection->end && room->capacity > 0 &&
        connection->response.framing == FRAMING_LENGTH && connection->body_reader.remaining > 0)
        return read_into(connection, room, data);
    while (!connection->whole) {
        struct text bytes = received(connection);
        enum body_reader_progress progress;
        enum transfer transfer;

        if (connection->response.until_close)
            return read_until_close(connection, data);
        progress = body_reader_take(&connection->body_reader, &bytes, data);
        connection->start = connection->end - bytes.length;
        if (progress == BODY_READER_REFUSED)
            return TRANSFER_FAILED;
        connection->whole = progress == BODY_READER_WHOLE;
        if (data->length > 0)
            return TRANSFER_DONE;
        if (connection->whole)
            break;
        transfer = receive(connection);
        if (transfer != TRANSFER_DONE)
            return transfer == TRANSFER_END ? TRANSFER_FAILED : transfer; /* cut short */
    }
    return TRANSFER_END;
}

bool origin_connection_holds(const struct origin_connection *connection)
{
    return connection->start < connection->end;
}

void origin_connection_close(struct origin_connection *connection)
{
    if (connection->transport.socket >= 0)
        connection->transport.kind->close(&connection->transport);
    connection->transport.socket = -1;
}
