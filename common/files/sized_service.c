/* The service that answers /N with a document of N bytes. For odd N the document never changes; for
 * even N each one is new. */
#include "common/files/sized_service.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SMALLEST 100
#define LARGEST  20000

/* The date of odd documents: Mon, 01 Jan 2024 00:00:00 GMT. */
#define MADE INT64_C(1704067200)

/* Reads the N of "/N". Leading zeros are refused: each document has one address. */
static bool read_size(struct text path, uint64_t *size)
{
    struct text digits = {path.data + 1, path.length - 1};

    return path.length > 1 && digits.data[0] != '0' && text_number(digits, size) &&
           *size >= SMALLEST && *size <= LARGEST;
}

/* Adds `size` bytes of text. */
static void add_filling(struct buffer *page, size_t size)
{
    const struct text line = TEXT("This document was made to be as long as its address says.\n");

    for (; size >= line.length; size -= line.length)
        buffer_add(page, line);
    buffer_add(page, (struct text){line.data, size});
}

/* The smallest document has three bytes of text. */
static void write_document(size_t size, struct buffer *page)
{
    const struct text end = TEXT("</p></body></html>\n");

    buffer_string(page, "<!DOCTYPE html>\n<html lang=\"en\"><head><title>");
    buffer_number(page, size);
    buffer_string(page, " bytes</title></head><body><p>");
    add_filling(page, size - page->length - end.length);
    buffer_add(page, end);
}

static void describe_constant(uint64_t size, int max_age, struct response *response)
{
    buffer_string(&response->etag, "\"sized-");
    buffer_number(&response->etag, size);
    buffer_character(&response->etag, '"');
    response->modified = MADE;
    response->caching = CACHING_FOR;
    response->max_age = max_age;
}

/* The entity tag is random: no other process or moment makes the same one. The date of modification
 * is later than any that a client can send. */
static bool describe_new(struct response *response)
{
    uint64_t chance[2];

    if (getrandom(chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return false;
    buffer_character(&response->etag, '"');
    buffer_hex(&response->etag, chance[0]);
    buffer_character(&response->etag, '-');
    buffer_hex(&response->etag, chance[1]);
    buffer_character(&response->etag, '"');
    response->modified = INT64_MAX;
    response->caching = CACHING_VALIDATED;
    return true;
}

static void answer_read(const struct sized_service *sized, const struct request *request,
                        struct response *response)
{
    struct buffer page = {0};
    uint64_t size;

    if (!read_size(request->path, &size)) {
        response_refuse(response, 400, "The path is a number of bytes: from /100 to /20000.");
        return;
    }
    page.capacity = (size_t)size;
    page.data = malloc(page.capacity);
    if (page.data == NULL || (size % 2 == 0 && !describe_new(response))) {
        free(page.data);
        response_refuse(response, 503, "The server cannot make this document now.");
        return;
    }
    write_document((size_t)size, &page);
    if (size % 2 == 1)
        describe_constant(size, sized->max_age, response);
    response->status = 200;
    response->type = TEXT("text/html; charset=utf-8");
    response->body = response_page(&page);
    response->has_validators = true;
}

static void answer(const struct service_context *context, const struct request *request,
                   struct moment now, struct response *response)
{
    (void)now;
    if (request->method == METHOD_GET || request->method == METHOD_HEAD)
        answer_read(context->state, request, response);
    else
        response_refuse(response, 501, "Documents can only be read here: by GET and HEAD.");
}

const struct service service_sized = {.name = "sized", .answer = answer};
