/* Applies preconditions and ranges to a response, and writes its head. */
#include "common/http/response.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PAGE_SIZE 768
/* Each part of a multipart response repeats the type. If it is longer than this, the whole body is
 * sent instead of several ranges. */
#define PART_TYPE_LIMIT 128

static const struct {
    int status;
    struct text reason;
} reasons[] = {
    {200, TEXT_IS("OK")},
    {204, TEXT_IS("No Content")},
    {206, TEXT_IS("Partial Content")},
    {301, TEXT_IS("Moved Permanently")},
    {304, TEXT_IS("Not Modified")},
    {400, TEXT_IS("Bad Request")},
    {403, TEXT_IS("Forbidden")},
    {404, TEXT_IS("Not Found")},
    {405, TEXT_IS("Method Not Allowed")},
    {408, TEXT_IS("Request Timeout")},
    {412, TEXT_IS("Precondition Failed")},
    {413, TEXT_IS("Content Too Large")},
    {414, TEXT_IS("URI Too Long")},
    {416, TEXT_IS("Range Not Satisfiable")},
    {417, TEXT_IS("Expectation Failed")},
    {421, TEXT_IS("Misdirected Request")},
    {431, TEXT_IS("Request Header Fields Too Large")},
    {500, TEXT_IS("Internal Server Error")},
    {501, TEXT_IS("Not Implemented")},
    {502, TEXT_IS("Bad Gateway")},
    {503, TEXT_IS("Service Unavailable")},
    {504, TEXT_IS("Gateway Timeout")},
    {505, TEXT_IS("HTTP Version Not Supported")},
    {508, TEXT_IS("Loop Detected")},
};

struct text response_reason(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return TEXT("Unknown");
}

void response_start(struct response *response)
{
    memset(response, 0, offsetof(struct response, ranges));
    response->etag.data = response->etag_space;
    response->etag.capacity = sizeof response->etag_space;
    response->body.file = -1;
}

static void drop_body(struct response *response)
{
    if (response->body.file >= 0)
        close(response->body.file);
    if (response->body.release != NULL)
        response->body.release(response->body.owner);
    response->body = (struct body){.file = -1};
}

void response_end(struct response *response)
{
    drop_body(response);
    if (response->fields != NULL)
        free(response->fields);
    response->fields = NULL;
    response->reason = (struct text){0};
}

struct body response_page(const struct buffer *page)
{
    return (struct body){.kind = BODY_MEMORY,
                         .length = page->length,
                         .memory = page->data,
                         .release = free,
                         .owner = page->data,
                         .file = -1};
}

static void write_page(const struct response *response, const char *problem, struct buffer *page)
{
    buffer_add(page, TEXT("<!DOCTYPE html>\n<html lang=\"en\">\n<title>"));
    buffer_number(page, (uint64_t)response->status);
    buffer_character(page, ' ');
    buffer_add(page, response_reason(response->status));
    buffer_add(page, TEXT("</title>\n<h1>"));
    buffer_number(page, (uint64_t)response->status);
    buffer_character(page, ' ');
    buffer_add(page, response_reason(response->status));
    buffer_add(page, TEXT("</h1>\n<p>"));
    buffer_html(page, text_of(problem));
    buffer_add(page, TEXT("</p>\n</html>\n"));
}

void response_refuse(struct response *response, int status, const char *problem)
{
    struct buffer page = {.data = malloc(PAGE_SIZE), .capacity = PAGE_SIZE};

    response_end(response);
    response->status = status;
    response->type = TEXT("text/html; charset=utf-8");
    response->has_validators = false;
    response->caching = CACHING_UNSAID;
    response->range_count = 0;
    if (page.data == NULL)
        return; /* the response has its status, and no page */
    write_page(response, problem, &page);
    response->body = response_page(&page);
}

bool response_refuse_scheme(struct response *response, const struct request *request,
                            enum scheme scheme)
{
    if (request->scheme == SCHEME_UNSAID || request->scheme == scheme)
        return false;
    response_refuse(response, 421, "This server answers for the other of http and https.");
    return true;
}

static void settle_ranges(struct response *response, const struct request *request,
                          const struct validators *validators, int64_t now)
{
    struct text value;
    int count;

    if (request->method != METHOD_GET || !request_single(request, FIELD_RANGE, &value) ||
        !conditional_range(request, validators, now))
        return;
    response->whole = response->body.length;
    count = range_read(value, response->whole, response->ranges);
    if (count > 1 && response->type.length > PART_TYPE_LIMIT)
        return; /* a server may ignore Range */
    if (count < 0) {
        response_refuse(response, 416, "The document has no byte in the range asked for.");
    } else if (count > 0) {
        response->status = 206;
        response->reason = (struct text){0};
        response->range_count = count;
    }
    if (count > 1 && getrandom(&response->boundary, sizeof response->boundary, 0) < 0)
        response->boundary = (uint64_t)now;
}

void response_apply_conditions(struct response *response, const struct request *request,
                               struct moment now)
{
    struct validators validators = {.etag = {response->etag.data, response->etag.length},
                                    .modified = response->modified};

    if ((response->status != 200 && response->status != 203) || !response->has_validators)
        return;
    switch (conditional_judge(request, &validators, now.seconds)) {
    case VERDICT_NOT_MODIFIED:
        drop_body(response);
        response->status = 304;
        response->reason = (struct text){0};
        break;
    case VERDICT_FAILED:
        response_refuse(response, 412, "The document is not in the state that was asked for.");
        break;
    case VERDICT_GO_ON:
        if (response->status == 200)
            settle_ranges(response, request, &validators, now.seconds);
    }
}

static void write_field(struct buffer *output, struct text name, struct text value)
{
    buffer_add(output, name);
    buffer_add(output, value);
    buffer_add(output, TEXT("\r\n"));
}

static void write_number_field(struct buffer *output, struct text name, uint64_t number)
{
    buffer_add(output, name);
    buffer_number(output, number);
    buffer_add(output, TEXT("\r\n"));
}

static void write_content_range(const struct response *response, const struct range *range,
                                struct buffer *output)
{
    buffer_add(output, TEXT("Content-Range: bytes "));
    if (range != NULL) {
        buffer_number(output, range->first);
        buffer_character(output, '-');
        buffer_number(output, range->end - 1);
    } else {
        buffer_character(output, '*');
    }
    buffer_character(output, '/');
    buffer_number(output, response->whole);
    buffer_add(output, TEXT("\r\n"));
}

void response_write_part(const struct response *response, int index, struct buffer *output)
{
    buffer_add(output, TEXT("\r\n--"));
    buffer_hex(output, response->boundary);
    if (index == response->range_count) {
        buffer_add(output, TEXT("--\r\n"));
        return;
    }
    buffer_add(output, TEXT("\r\n"));
    if (response->type.length > 0)
        write_field(output, TEXT("Content-Type: "), response->type);
    write_content_range(response, &response->ranges[index], output);
    buffer_add(output, TEXT("\r\n"));
}

uint64_t response_length(const struct response *response)
{
    uint64_t length = 0;

    if (response->range_count == 0)
        return response->body.length;
    for (int i = 0; i < response->range_count; i++)
        length += response->ranges[i].end - response->ranges[i].first;
    for (int i = 0; response->range_count > 1 && i <= response->range_count; i++) {
        char space[PART_TYPE_LIMIT + 128];
        struct buffer part = {.data = space, .capacity = sizeof space};
        response_write_part(response, i, &part);
        length += part.length;
    }
    return length;
}

static void write_content_type(const struct response *response, struct buffer *output)
{
    if (response->range_count > 1) {
        buffer_add(output, TEXT("Content-Type: multipart/byteranges; boundary="));
        buffer_hex(output, response->boundary);
        buffer_add(output, TEXT("\r\n"));
    } else {
        write_field(output, TEXT("Content-Type: "), response->type);
    }
}

static void write_validators(const struct response *response, struct moment now,
                             struct buffer *output)
{
    buffer_add(output, TEXT("Last-Modified: "));
    /* Last-Modified must not be in the future (RFC 9110, section 8.8.2.1). */
    date_write(output, response->modified < now.seconds ? response->modified : now.seconds);
    buffer_add(output, TEXT("\r\nETag: "));
    buffer_add(output, (struct text){response->etag.data, response->etag.length});
    buffer_add(output, TEXT("\r\nAccept-Ranges: bytes\r\n"));
}

static void write_caching(const struct response *response, struct buffer *output)
{
    if (response->caching == CACHING_VALIDATED)
        write_field(output, TEXT("Cache-Control: "), TEXT("no-cache"));
    else if (response->caching == CACHING_FOR)
        write_number_field(output, TEXT("Cache-Control: max-age="), (uint64_t)response->max_age);
}

static void write_status_line(const struct response *response, bool simple, struct buffer *output)
{
    buffer_add(output, simple ? TEXT("HTTP/1.0 ") : TEXT("HTTP/1.1 "));
    buffer_number(output, (uint64_t)response->status);
    buffer_character(output, ' ');
    write_field(output, TEXT(""),
                response->reason.length > 0 ? response->reason : response_reason(response->status));
}

/* The location begins with one slash: after two, the client could choose the host. */
static void write_location(const struct request *request, struct buffer *output)
{
    struct text path = request->path;

    while (path.length > 0 && path.data[0] == '/') {
        path.data++;
        path.length--;
    }
    buffer_add(output, TEXT("Location: /"));
    buffer_add(output, path);
    buffer_character(output, '/');
    buffer_add(output, request->query);
    buffer_add(output, TEXT("\r\n"));
}

/* Writes the fields that describe the body. */
static void write_description(const struct response *response, struct moment now,
                              struct buffer *output)
{
    if (response->has_validators && response->fields == NULL)
        write_validators(response, now, output);
    write_caching(response, output);
    if (response->status == 304 || response->status == 204)
        return;
    if (response->type.length > 0 || response->range_count > 1)
        write_content_type(response, output);
    write_number_field(output, TEXT("Content-Length: "), response_length(response));
    if (response->range_count == 1)
        write_content_range(response, response->ranges, output);
    else if (response->status == 416)
        write_content_range(response, NULL, output);
}

static void write_persistence(enum persistence persistence, struct buffer *output)
{
    switch (persistence) {
    case PERSISTENCE_CLOSE:
        buffer_add(output, TEXT("Connection: close\r\n"));
        break;
    case PERSISTENCE_KEEP_ALIVE:
        buffer_add(output, TEXT("Connection: keep-alive\r\n"));
        break;
    case PERSISTENCE_IMPLIED:
        break;
    }
}

void response_write_head(const struct response *response, enum persistence persistence, bool simple,
                         struct moment now, struct buffer *output)
{
    write_status_line(response, simple, output);
    if (response->in_parts)
        write_field(output, TEXT("Accept-Ranges: "), TEXT("bytes"));
    if (response->bare) {
        buffer_add(output, TEXT("Content-Length: 0\r\n\r\n"));
        return;
    }
    if (response->fields != NULL) {
        buffer_add(output, (struct text){response->fields, response->fields_length});
    } else {
        buffer_add(output, TEXT("Date: "));
        date_write(output, now.seconds);
        buffer_add(output, TEXT("\r\nServer: fork-vs-thread\r\n"));
    }
    write_description(response, now, output);
    if (response->allow.length > 0)
        write_field(output, TEXT("Allow: "), response->allow);
    if (response->moved_to != NULL)
        write_location(response->moved_to, output);
    if (response->status == 503)
        write_field(output, TEXT("Retry-After: "), TEXT("1"));
    write_persistence(persistence, output);
    buffer_add(output, TEXT("\r\n"));
}
