/* A connection to an origin: what it needs to wait for is said, never waited for. */
#ifndef COMMON_PROXY_UPSTREAM_H
#define COMMON_PROXY_UPSTREAM_H

#include "common/http/body_reader.h"
#include "common/http/response_parser.h"
#include "common/net/address.h"
#include "common/net/transport.h"

struct upstream {
    struct transport transport; /* its socket is -1 while there is none */
    struct parsed_response response;
    struct body_reader body_reader; /* the reply's body */
    bool whole;                     /* it has come to its end */
    const char *problem;            /* why the reply cannot be passed on, if it came at all */
    size_t start, end;              /* received, and not yet taken */
    char buffer[RESPONSE_HEAD_LIMIT];
    char fields[RESPONSE_HEAD_LIMIT + 1024]; /* of the reply; there is room to add some */
    struct buffer lines;                     /* what the fields fill of that */
};

/* Empties it. The two large buffers are not touched before they are used. */
void upstream_start(struct upstream *upstream);

/* Begins to connect. False, with errno set, if that fails at once. */
bool upstream_connect(struct upstream *upstream, const union address *address);
/* Whether it has connected: done, or try again when the socket can be written, or failed with
 * errno set. */
enum transfer upstream_connected(struct upstream *upstream);

/* Sends from the head of the text as much as goes now. */
enum transfer upstream_send(struct upstream *upstream, struct text *bytes);

/* Reads the head of a reply: done once it is whole. After an interim one it reads the next. With
 * TRANSFER_FAILED or TRANSFER_END there will be none, and `problem` may say why. */
enum transfer upstream_head(struct upstream *upstream, enum method method);

/* The next piece of the body, which stays until the next call; with TRANSFER_END there is no more,
 * and it is whole. */
enum transfer upstream_body(struct upstream *upstream, struct text *data);

/* Whether bytes were received that are not taken yet. */
bool upstream_holds(const struct upstream *upstream);

void upstream_close(struct upstream *upstream);

#endif
