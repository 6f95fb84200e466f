/* The input and output of a connection, and the parts of a response that are left to send. */
#include "common/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The capacity of the output once output_space is too small, and for a head that is too long for
 * that. */
#define OUTPUT_LARGE   16384
#define OUTPUT_LARGEST 49152

struct text exchange_received(const struct exchange *exchange)
{
    return (struct text){exchange->input + exchange->input_start,
                         exchange->input_end - exchange->input_start};
}

bool exchange_has_output(const struct exchange *exchange)
{
    return exchange->output_sent < exchange->output.length;
}

/* ---- the input ---- */

static void use_small_input(struct exchange *exchange)
{
    exchange->input = exchange->input_space;
    exchange->input_size = sizeof exchange->input_space;
    exchange->input_start = exchange->input_end = 0;
}

void exchange_free_input(struct exchange *exchange)
{
    if (exchange->input != exchange->input_space)
        free(exchange->input);
    use_small_input(exchange);
}

bool exchange_move_input(struct exchange *exchange, size_t room)
{
    struct text bytes = exchange_received(exchange);
    size_t size = REQUEST_HEAD_LIMIT + EXCHANGE_BODY_ROOM;
    char *larger = exchange->input;

    if (bytes.length + room > exchange->input_size) {
        if (exchange->input_size == size)
            return false;
        larger = malloc(size);
        if (larger == NULL)
            return false;
    }
    memmove(larger, bytes.data, bytes.length);
    if (larger != exchange->input) {
        exchange_free_input(exchange);
        exchange->input = larger;
        exchange->input_size = size;
    }
    exchange->input_start = 0;
    exchange->input_end = bytes.length;
    return true;
}

/* ---- the output ---- */

static void use_small_output(struct exchange *exchange)
{
    exchange->output =
        (struct buffer){.data = exchange->output_space, .capacity = sizeof exchange->output_space};
    exchange->output_sent = 0;
}

void exchange_free_output(struct exchange *exchange)
{
    if (exchange->output.data != exchange->output_space)
        free(exchange->output.data);
    use_small_output(exchange);
}

bool exchange_grow_output(struct exchange *exchange)
{
    struct buffer *output = &exchange->output;
    size_t capacity = output->capacity < OUTPUT_LARGE ? OUTPUT_LARGE : OUTPUT_LARGEST;
    char *larger;

    if (output->capacity == OUTPUT_LARGEST ||
        (capacity == OUTPUT_LARGEST && exchange_has_output(exchange)))
        return false;
    larger = malloc(capacity);
    if (larger == NULL)
        return false;
    memcpy(larger, output->data, output->length);
    if (output->data != exchange->output_space)
        free(output->data);
    output->data = larger;
    output->capacity = capacity;
    return true;
}

bool exchange_put_continue(struct exchange *exchange)
{
    const struct text interim = TEXT("HTTP/1.1 100 Continue\r\n\r\n");

    if (interim.length > exchange->output.capacity - exchange->output.length &&
        !exchange_grow_output(exchange))
        return false;
    buffer_add(&exchange->output, interim);
    return true;
}

/* ---- begin and end ---- */

void exchange_start(struct exchange *exchange)
{
    use_small_input(exchange);
    use_small_output(exchange);
    exchange->portion = 0;
    request_start(&exchange->request);
    response_start(&exchange->response);
}

void exchange_end(struct exchange *exchange)
{
    exchange_free_input(exchange);
    exchange_free_output(exchange);
}

/* ---- the body of the response ---- */

void exchange_begin_portions(struct exchange *exchange)
{
    const struct response *response = &exchange->response;

    exchange->part = 0;
    exchange->body_bytes = 0;
    exchange->offset = exchange->portion = 0;
    if (response->body.kind == BODY_NONE || exchange->request.method == METHOD_HEAD ||
        response->bare)
        exchange->part = response->range_count + 1;
    else if (response->range_count == 0)
        exchange->portion = response->body.length;
    else if (response->range_count == 1) {
        exchange->offset = response->ranges[0].first;
        exchange->portion = response->ranges[0].end - response->ranges[0].first;
    }
}

bool exchange_has_parts(const struct exchange *exchange)
{
    return exchange->response.range_count > 1 && exchange->part <= exchange->response.range_count;
}

void exchange_put_part(struct exchange *exchange)
{
    const struct response *response = &exchange->response;
    size_t before = exchange->output.length;

    response_write_part(response, exchange->part, &exchange->output);
    exchange->body_bytes += exchange->output.length - before;
    if (exchange->part < response->range_count) {
        const struct range *range = &response->ranges[exchange->part];
        exchange->offset = range->first;
        exchange->portion = range->end - range->first;
    }
    exchange->part++;
}

void exchange_take_portion(struct exchange *exchange, size_t count)
{
    exchange->offset += count;
    exchange->portion -= count;
    exchange->body_bytes += count;
}

uint64_t exchange_sound_portion(const struct exchange *exchange)
{
    const struct body *body = &exchange->response.body;

    return body->check == NULL ? exchange->portion
                               : body->check(body->owner, exchange->offset, exchange->portion);
}

bool exchange_put_small_body(struct exchange *exchange)
{
    struct buffer *output = &exchange->output;
    const struct body *body = &exchange->response.body;

    /* Further requests are here, whose responses can leave together; or the body is in memory, and
     * a copy of it costs less than a second write. */
    if ((exchange_received(exchange).length > 0 || body->kind == BODY_MEMORY) &&
        exchange->portion > output->capacity - output->length &&
        exchange->portion + output->length <= OUTPUT_LARGE)
        exchange_grow_output(exchange);
    if (exchange->portion > output->capacity - output->length)
        return true;
    while (exchange->portion > 0) {
        size_t size = (size_t)exchange_sound_portion(exchange);
        ssize_t count = (ssize_t)size;
        if (body->kind == BODY_MEMORY)
            memcpy(output->data + output->length, body->memory + exchange->offset, size);
        else
            count = pread(body->file, output->data + output->length, size,
                          (off_t)(body->start + exchange->offset));
        if (count <= 0)
            return false; /* the file has shrunk, or is damaged */
        output->length += (size_t)count;
        exchange_take_portion(exchange, (size_t)count);
    }
    return true;
}
