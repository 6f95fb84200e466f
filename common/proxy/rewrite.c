/* Writes the heads of forwarded requests, and the forwarded fields of responses. */
#include "common/proxy/rewrite.h"

#include "common/http/fields.h"

struct text rewrite_method(const struct request *request)
{
    return (struct text){request->line.data, text_find(request->line, ' ')};
}

struct text rewrite_target(const struct request *request)
{
    size_t skip = text_find(request->line, ' ') + 1;
    struct text rest = {request->line.data + skip, request->line.length - skip};

    return (struct text){rest.data, text_find(rest, ' ')};
}

bool rewrite_is_absolute(const struct request *request)
{
    struct text target = rewrite_target(request);

    return request->method != METHOD_CONNECT && target.data[0] != '/' && target.data[0] != '*';
}

bool rewrite_is_asterisk(const struct request *request)
{
    struct text target = rewrite_target(request);

    if (request->method != METHOD_OPTIONS)
        return false;
    if (text_equal(target, TEXT("*")))
        return true;
    /* "OPTIONS http://host" becomes "OPTIONS *" at the last proxy. */
    return request->scheme != SCHEME_UNSAID && target.data[target.length - 1] != '/' &&
           request->path.length == 1 && request->query.length == 0;
}

static bool is_condition(struct text name)
{
    static const struct text known[] = {
        TEXT_IS("If-Match"),          TEXT_IS("If-None-Match"),
        TEXT_IS("If-Modified-Since"), TEXT_IS("If-Unmodified-Since"),
        TEXT_IS("If-Range"),          TEXT_IS("Range"),
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_same(name, known[i]))
            return true;
    return false;
}

/* Returns true for fields that the proxy writes itself, or that are meant for it. */
static bool is_own(struct text name)
{
    static const struct text known[] = {
        TEXT_IS("Host"),   TEXT_IS("Content-Length"),      TEXT_IS("Max-Forwards"),
        TEXT_IS("Expect"), TEXT_IS("Proxy-Authorization"),
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_same(name, known[i]))
            return true;
    return false;
}

static void write_request_line(const struct rewrite *rewrite, struct buffer *output)
{
    const struct request *request = rewrite->request;

    buffer_add(output, rewrite_method(request));
    buffer_character(output, ' ');
    if (rewrite_is_asterisk(request)) {
        buffer_character(output, '*');
    } else {
        buffer_add(output, request->path);
        buffer_add(output, request->query);
    }
    buffer_add(output, TEXT(" HTTP/1.1\r\n"));
}

static void write_framing(const struct request *request, struct buffer *output)
{
    struct text value;

    if (request->framing == FRAMING_CHUNKED) {
        fields_add(output, TEXT("Transfer-Encoding"), TEXT("chunked"));
    } else if (fields_single(request->fields, TEXT("Content-Length"), &value)) {
        buffer_add(output, TEXT("Content-Length: "));
        buffer_number(output, request->content_length);
        buffer_add(output, TEXT("\r\n"));
    }
    if (request->expects_continue && request->framing != FRAMING_NONE)
        fields_add(output, TEXT("Expect"), TEXT("100-continue"));
}

bool rewrite_left(const struct request *request, uint64_t *left)
{
    struct text value;

    if ((request->method != METHOD_OPTIONS && request->method != METHOD_TRACE) ||
        !fields_single(request->fields, TEXT("Max-Forwards"), &value) || value.length == 0)
        return false;
    for (size_t i = 0; i < value.length; i++)
        if (value.data[i] < '0' || value.data[i] > '9')
            return false;
    if (!text_number(value, left))
        *left = UINT64_MAX; /* the number is larger than that */
    return true;
}

/* A request with Max-Forwards: 0 is not forwarded. */
static void write_max_forwards(const struct request *request, struct buffer *output)
{
    uint64_t left;

    if (!rewrite_left(request, &left) || left == 0)
        return;
    buffer_add(output, TEXT("Max-Forwards: "));
    buffer_number(output, left - 1);
    buffer_add(output, TEXT("\r\n"));
}

void rewrite_request(const struct rewrite *rewrite, struct buffer *output)
{
    struct text fields = rewrite->request->fields, name, value;
    struct text hops = fields_for_hops(fields);
    size_t from = 0;

    write_request_line(rewrite, output);
    fields_add(output, TEXT("Host"), rewrite->authority);
    while (fields_next(fields, &from, &name, &value))
        if (!is_own(name) && !fields_is_hop(hops, name) &&
            !((rewrite->validates || rewrite->rest.length > 0) && is_condition(name)) &&
            !(rewrite->forwarded != NULL && forwarded_replaces(rewrite->forwarded, name)))
            fields_add(output, name, value);
    if (rewrite->forwarded != NULL)
        forwarded_write(rewrite->forwarded, fields, output);
    if (rewrite->etag.length > 0)
        fields_add(output, TEXT("If-None-Match"), rewrite->etag);
    if (rewrite->modified.length > 0)
        fields_add(output, TEXT("If-Modified-Since"), rewrite->modified);
    if (rewrite->rest.length > 0) {
        fields_add(output, TEXT("Range"), rewrite->rest);
        fields_add(output, TEXT("If-Range"), rewrite->if_range);
    }
    write_max_forwards(rewrite->request, output);
    write_framing(rewrite->request, output);
    rewrite_via(rewrite->request->minor, rewrite->via, output);
    if (!rewrite->keeps_connection)
        buffer_add(output, TEXT("Connection: close\r\n"));
    buffer_add(output, TEXT("\r\n"));
}

/* An element of Via: "1.1 name" and perhaps a comment. */
static bool is_from(struct text element, struct text via)
{
    size_t version = text_find(element, ' ');
    struct text name = {element.data + version, element.length - version};

    name = text_trim(name);
    name.length = text_find(name, ' ');
    return text_same(name, via);
}

bool rewrite_has_looped(const struct request *request, struct text via)
{
    struct text value, element;
    size_t from = 0;

    while (fields_find(request->fields, TEXT("Via"), &from, &value))
        while (text_next(&value, &element))
            if (is_from(element, via))
                return true;
    return false;
}

void rewrite_fields(struct text fields, struct text except, struct buffer *output)
{
    struct text hops = fields_for_hops(fields), name, value;
    size_t from = 0;

    while (fields_next(fields, &from, &name, &value))
        if (!text_same(name, TEXT("Content-Length")) && !text_same(name, except) &&
            !fields_is_hop(hops, name))
            fields_add(output, name, value);
}

void rewrite_via(unsigned minor, struct text via, struct buffer *output)
{
    buffer_add(output, TEXT("Via: 1."));
    buffer_number(output, minor);
    buffer_character(output, ' ');
    buffer_add(output, via);
    buffer_add(output, TEXT("\r\n"));
}
