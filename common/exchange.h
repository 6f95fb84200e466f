/* The buffers and messages of a connection while it works on a request. An exchange knows neither
 * the transport nor the state of the connection. */
#ifndef COMMON_EXCHANGE_H
#define COMMON_EXCHANGE_H

#include "common/http/body_reader.h"
#include "common/http/request.h"
#include "common/http/response.h"
#include "common/service.h"

/* The least space for the body of a request behind its head. */
#define EXCHANGE_BODY_ROOM 4096

/* A connection needs an exchange while it works on a request, and none while it is idle. It is
 * small, since in a new process each touched page costs a fault, and grows on demand. */
struct exchange {
    struct response response;
    struct request request;
    struct body_reader body_reader;

    /* The rest of the response's body. */
    uint64_t offset;     /* of the next byte */
    uint64_t portion;    /* bytes until the next part, or the end */
    int part;            /* index of the next of several parts */
    uint64_t body_bytes; /* sent so far, for the log */

    char *input; /* input_space, or a larger one from malloc */
    size_t input_size;
    size_t input_start, input_end; /* received and not yet taken */
    size_t body_start;             /* where the head before a body ends */
    struct buffer output;          /* in output_space, or a larger one from malloc */
    size_t output_sent;
    char input_space[1024];
    char output_space[1536];
    struct service_call call; /* last: untouched unless the service works in steps */
};

/* Initialises an exchange. */
void exchange_start(struct exchange *exchange);
/* Frees its memory, but not what its response owns. */
void exchange_end(struct exchange *exchange);

/* Returns the input that is not taken yet. */
struct text exchange_received(const struct exchange *exchange);
/* Moves the input that is not taken yet to the front, and enlarges the space if needed, so that
 * `room` bytes are free behind it. False if that is impossible. */
bool exchange_move_input(struct exchange *exchange, size_t room);
/* Drops the input. */
void exchange_free_input(struct exchange *exchange);

/* Returns true if some of the output is not sent yet. */
bool exchange_has_output(const struct exchange *exchange);
/* Enlarges the output; far beyond its usual size only if it is empty. False if it is large already,
 * or there is no memory. */
bool exchange_grow_output(struct exchange *exchange);
/* Drops the output. */
void exchange_free_output(struct exchange *exchange);
/* Appends "100 Continue" to the output. False if there is no memory. */
bool exchange_put_continue(struct exchange *exchange);

/* Prepares to send the body of the response. */
void exchange_begin_portions(struct exchange *exchange);
/* Notes that `count` bytes of the portion were sent. */
void exchange_take_portion(struct exchange *exchange, size_t count);
/* Copies a small body behind its head: one write sends both. False if its file has shrunk, or is
 * damaged. */
bool exchange_put_small_body(struct exchange *exchange);
/* Returns how many bytes of the portion may be sent; 0: it is damaged,
 * or cannot be checked. */
uint64_t exchange_sound_portion(const struct exchange *exchange);
/* Returns true if another part, or the end of a multipart body, must be sent. */
bool exchange_has_parts(const struct exchange *exchange);
/* Appends the head of the next part to the output, and prepares to send that part. */
void exchange_put_part(struct exchange *exchange);

#endif
