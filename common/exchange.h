/* What a connection works on a request with: what was received, and what goes. It knows neither
 * where that comes from nor in which state the connection is. */
#ifndef COMMON_EXCHANGE_H
#define COMMON_EXCHANGE_H

#include "common/http/body_reader.h"
#include "common/http/request.h"
#include "common/http/response.h"
#include "common/service.h"

/* The room that is kept for the body of a request behind its head. */
#define EXCHANGE_BODY_ROOM 4096

/* What a connection needs while it works on a request, and can do without while it is idle. In a
 * new process or thread each page that is touched costs a fault: so it is small, and grows for
 * those who need more. */
struct exchange {
    struct response response;
    struct request request;
    struct body_reader body_reader;

    /* What is left of the reply's body. */
    uint64_t offset;     /* of the next byte */
    uint64_t portion;    /* bytes until the next part, or the end */
    int part;            /* of several, that comes next */
    uint64_t body_bytes; /* gone, for the log */

    char *input; /* input_space, or larger and from malloc */
    size_t input_size;
    size_t input_start, input_end; /* received, and not yet taken */
    size_t body_start;             /* where the head before a body ends */
    struct buffer output;          /* in output_space, or larger and from malloc */
    size_t output_sent;
    char input_space[1024];
    char output_space[1536];
    struct service_call call; /* at the end: not touched unless a service works in steps */
};

/* Makes an exchange of what is uninitialised. */
void exchange_start(struct exchange *exchange);
/* Gives back what it has from malloc. Its response is ended by who has begun it. */
void exchange_end(struct exchange *exchange);

/* What came, and is not taken yet. */
struct text exchange_received(const struct exchange *exchange);
/* Moves it to the front of the input, of a larger one if it has to be, so that there is so much
 * room behind it. False if there is none. */
bool exchange_move_input(struct exchange *exchange, size_t room);
/* Forgets it. */
void exchange_free_input(struct exchange *exchange);

/* Whether some of the output is not gone yet. */
bool exchange_has_output(const struct exchange *exchange);
/* Makes the output larger. False if it is, or if there is no memory. */
bool exchange_grow_output(struct exchange *exchange);
/* Forgets what is in it. */
void exchange_free_output(struct exchange *exchange);
/* Has the client send its body. False if there is no room to say so. */
bool exchange_put_continue(struct exchange *exchange);

/* Turns to the body of the reply: its first portion. */
void exchange_begin_portions(struct exchange *exchange);
/* So much of a portion has gone. */
void exchange_take_portion(struct exchange *exchange, size_t count);
/* Copies a body that is small enough behind its head: one write for both. False if its file has
 * shrunk. */
bool exchange_put_small_body(struct exchange *exchange);
/* Whether another of several parts, or the boundary behind the last one, is to come. */
bool exchange_has_parts(const struct exchange *exchange);
/* Puts the next boundary into the output, and turns to the part behind it. */
void exchange_put_part(struct exchange *exchange);

#endif
