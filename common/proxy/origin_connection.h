/* A connection to an origin. No function waits: each returns what the caller has to wait for. */
#ifndef COMMON_PROXY_ORIGIN_CONNECTION_H
#define COMMON_PROXY_ORIGIN_CONNECTION_H

#include "common/http/body_reader.h"
#include "common/http/response_parser.h"
#include "common/net/address.h"
#include "common/net/tls_client.h"
#include "common/net/transport.h"

struct origin_connection {
    struct transport transport; /* its socket is -1 while there is none */
    struct parsed_response response;
    struct body_reader body_reader; /* of the response */
    bool whole;                     /* the whole body has come */
    bool connecting;                /* the kernel has not said yet whether it has connected */
    bool reused;                    /* it has served another request before */
    bool heard;                     /* a byte has come since this request began */
    const char *problem;            /* why the response cannot be used; or NULL */
    size_t start, end;              /* bytes that are received and not taken */
    char buffer[RESPONSE_HEAD_LIMIT];
    char fields[RESPONSE_HEAD_LIMIT + 1024]; /* of the response, with room for some more */
    struct buffer lines;                     /* the part of that in use */
};

/* Empties it. The two large buffers are not touched before they are used. */
void origin_connection_start(struct origin_connection *connection);

/* Begins to connect, by TLS unless `tls` is NULL. Returns false with errno set if that fails at
 * once. */
bool origin_connection_connect(struct origin_connection *connection, const union address *address,
                               struct tls_client *tls);
/* Returns TRANSFER_DONE if it has connected, TRANSFER_WRITE if it has to wait, or TRANSFER_FAILED
 * with errno set. */
enum transfer origin_connection_connected(struct origin_connection *connection);

/* Continues with an idle connection to the same origin. */
void origin_connection_reuse(struct origin_connection *connection,
                             const struct transport *transport);
/* Returns true if another request may follow on the connection: the response is whole, does not end
 * with the connection, and nothing came behind it. */
bool origin_connection_is_reusable(const struct origin_connection *connection);

/* Sends the beginning of the text, as much as it can, and removes that. */
enum transfer origin_connection_send(struct origin_connection *connection, struct text *bytes);

/* Reads the head of a response, or the next one after an interim response. Returns TRANSFER_DONE
 * once it is whole. After TRANSFER_FAILED or TRANSFER_END there will be none, and `problem` may say
 * why. */
enum transfer origin_connection_head(struct origin_connection *connection, enum method method);

/* Reads the next piece of the body, which is valid until the next call. If the body has a length,
 * the piece may be read into the room. Returns TRANSFER_END if the body is whole. */
enum transfer origin_connection_body(struct origin_connection *connection,
                                     const struct buffer *room, struct text *data);

/* Returns true if it has bytes that are received and not taken. */
bool origin_connection_holds(const struct origin_connection *connection);

void origin_connection_close(struct origin_connection *connection);

#endif
