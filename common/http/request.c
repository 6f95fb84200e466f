/* Parses the head of a request. */
#include "common/http/request.h"

#include "common/http/fields.h"
#include "common/http/ip_literal.h"

#include <string.h>

static const struct text methods[METHOD_UNKNOWN] = {
    [METHOD_GET] = TEXT_IS("GET"),         [METHOD_HEAD] = TEXT_IS("HEAD"),
    [METHOD_OPTIONS] = TEXT_IS("OPTIONS"), [METHOD_POST] = TEXT_IS("POST"),
    [METHOD_PUT] = TEXT_IS("PUT"),         [METHOD_DELETE] = TEXT_IS("DELETE"),
    [METHOD_CONNECT] = TEXT_IS("CONNECT"), [METHOD_TRACE] = TEXT_IS("TRACE"),
    [METHOD_PATCH] = TEXT_IS("PATCH"),
};

static const struct text field_names[FIELD_OTHER] = {
    [FIELD_HOST] = TEXT_IS("Host"),
    [FIELD_CONNECTION] = TEXT_IS("Connection"),
    [FIELD_CONTENT_LENGTH] = TEXT_IS("Content-Length"),
    [FIELD_TRANSFER_ENCODING] = TEXT_IS("Transfer-Encoding"),
    [FIELD_EXPECT] = TEXT_IS("Expect"),
    [FIELD_RANGE] = TEXT_IS("Range"),
    [FIELD_IF_RANGE] = TEXT_IS("If-Range"),
    [FIELD_IF_MATCH] = TEXT_IS("If-Match"),
    [FIELD_IF_NONE_MATCH] = TEXT_IS("If-None-Match"),
    [FIELD_IF_MODIFIED_SINCE] = TEXT_IS("If-Modified-Since"),
    [FIELD_IF_UNMODIFIED_SINCE] = TEXT_IS("If-Unmodified-Since"),
    [FIELD_REFERER] = TEXT_IS("Referer"),
    [FIELD_USER_AGENT] = TEXT_IS("User-Agent"),
};

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_one_of(char c, struct text characters)
{
    return is_letter_or_digit(c) || text_find(characters, c) < characters.length;
}

bool request_is_token(char c)
{
    return is_one_of(c, TEXT("-_.!#$%&'*+^`|~"));
}

/* The characters of a host and port in a URI (RFC 3986), outside brackets. */
static bool is_host_character(char c)
{
    return is_one_of(c, TEXT(".:-_~!$&'()*+,;=%"));
}

/* The characters of a URI without a fragment. */
static bool is_target(char c)
{
    return is_one_of(c, TEXT("/.-_~?%&=+:@[]!$'()*,;"));
}

/* The characters of a query: browsers do not escape all that they should. */
static bool is_query(char c)
{
    const struct text unescaped = TEXT("\\^`{|}");

    return is_target(c) || text_find(unescaped, c) < unescaped.length;
}

/* The characters of a field value: visible, blank, tab, or above ASCII. */
static bool is_value(char c)
{
    return ((unsigned char)c >= ' ' && c != 0x7f) || c == '\t';
}

static bool is_made_of(struct text text, bool (*allowed)(char))
{
    for (size_t i = 0; i < text.length; i++)
        if (!allowed(text.data[i]))
            return false;
    return true;
}

void request_start(struct request *request)
{
    *request = (struct request){0};
}

static enum request_progress refuse(struct request *request, int status, const char *problem)
{
    request->status = status;
    request->problem = problem;
    request->keep_alive = false;
    return REQUEST_REFUSED;
}

static bool fail(struct request *request, int status, const char *problem)
{
    refuse(request, status, problem);
    return false;
}

/* Takes the part before `end` off the text; false if there is no such character. */
static bool take_until(struct text *text, char end, struct text *part)
{
    size_t length = text_find(*text, end);

    if (length == text->length)
        return false;
    *part = (struct text){text->data, length};
    text->data += part->length + 1;
    text->length -= part->length + 1;
    return true;
}

static bool read_version(struct request *request, struct text version)
{
    if (version.length != 8 || memcmp(version.data, "HTTP/", 5) != 0 || version.data[6] != '.' ||
        version.data[5] < '0' || version.data[5] > '9' || version.data[7] < '0' ||
        version.data[7] > '9')
        return fail(request, 400, "The request line does not end in a version of HTTP.");
    if (version.data[5] != '1')
        return fail(request, 505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
    request->minor = (unsigned)(version.data[7] - '0');
    return true;
}

static bool is_port(struct text digits)
{
    for (size_t i = 0; i < digits.length; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
    return digits.length <= 5;
}

/* Takes an address in brackets off the head of the text. */
static bool take_address(struct text *host)
{
    size_t end = text_find(*host, ']');
    struct text address = {host->data + 1, end - 1};

    if (end == host->length || !ip_literal_is_valid(address))
        return false;
    *host = (struct text){host->data + end + 1, host->length - end - 1};
    return host->length == 0 || host->data[0] == ':';
}

static bool has_good_escapes(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] == '%' && (i + 2 >= text.length || text_hex(text.data[i + 1]) < 0 ||
                                    text_hex(text.data[i + 2]) < 0))
            return false;
    return true;
}

/* Checks a Host field, or the authority of a target: a name or address, perhaps with a port. */
static bool is_host(struct text host)
{
    size_t end;

    if (host.length > 0 && host.data[0] == '[' && !take_address(&host))
        return false;
    if (!is_made_of(host, is_host_character) || !has_good_escapes(host))
        return false;
    end = text_find(host, ':');
    return end == host.length || is_port((struct text){host.data + end + 1, host.length - end - 1});
}

static bool begins_with(struct text text, struct text start)
{
    return text.length >= start.length && text_same((struct text){text.data, start.length}, start);
}

/* Takes the scheme off an absolute target; false if it is neither http nor https. */
static bool take_scheme(struct request *request, struct text *target)
{
    static const struct text schemes[] = {
        [SCHEME_HTTP] = TEXT_IS("http://"),
        [SCHEME_HTTPS] = TEXT_IS("https://"),
    };

    for (enum scheme scheme = SCHEME_HTTP; scheme <= SCHEME_HTTPS; scheme++) {
        if (begins_with(*target, schemes[scheme])) {
            target->data += schemes[scheme].length;
            target->length -= schemes[scheme].length;
            request->scheme = scheme;
            return true;
        }
    }
    return false;
}

/* Takes the authority off a target. */
static bool read_authority(struct request *request, struct text *target)
{
    size_t end;

    for (end = 0; end < target->length; end++)
        if (target->data[end] == '/' || target->data[end] == '?')
            break;
    request->host = (struct text){target->data, end};
    target->data += end;
    target->length -= end;
    return end > 0 && request->host.data[0] != ':' && is_host(request->host);
}

static bool read_target(struct request *request, struct text target)
{
    size_t length = text_find(target, '?');
    struct text query = {target.data + length, target.length - length};

    if (target.length == 0 || !is_made_of((struct text){target.data, length}, is_target) ||
        !is_made_of(query, is_query))
        return fail(request, 400, "The request target has a character that no URI can have.");
    if (request->method == METHOD_CONNECT) {
        request->host = target;
        if (!is_host(target))
            return fail(request, 400, "CONNECT wants a host and a port.");
        return true;
    }
    if (text_equal(target, TEXT("*")) && request->method == METHOD_OPTIONS)
        return true;
    if (take_scheme(request, &target)) {
        if (!read_authority(request, &target))
            return fail(request, 400, "The request target has no valid host.");
        if (target.length == 0 || target.data[0] == '?') {
            request->path = TEXT("/");
            request->query = target;
            return true;
        }
    }
    if (target.data[0] != '/')
        return fail(request, 400,
                    "The request target is neither a path nor a URI of http or https.");
    request->path = (struct text){target.data, text_find(target, '?')};
    request->query =
        (struct text){target.data + request->path.length, target.length - request->path.length};
    return true;
}

static bool read_request_line(struct request *request, struct text line)
{
    struct text method, target;

    request->line = line;
    if (!take_until(&line, ' ', &method) || method.length == 0 ||
        !is_made_of(method, request_is_token))
        return fail(request, 400, "The request line does not begin with a method and a blank.");
    for (request->method = 0; request->method < METHOD_UNKNOWN; request->method++)
        if (text_equal(method, methods[request->method]))
            break;
    if (!take_until(&line, ' ', &target))
        return fail(request, 400, "The request line is not made of method, target and version.");
    return read_version(request, line) && read_target(request, target);
}

static enum field_name field_known(struct text name)
{
    for (enum field_name known = 0; known < FIELD_OTHER; known++)
        if (text_same(name, field_names[known]))
            return known;
    return FIELD_OTHER;
}

static bool read_field(struct request *request, struct text line)
{
    const char *problem = NULL;
    struct text name;

    if (request->field_count == REQUEST_FIELD_LIMIT)
        return fail(request, 431, "The request has more than 100 header fields.");
    if (line.data[0] == ' ' || line.data[0] == '\t')
        problem = "A header field is folded over several lines.";
    else if (!take_until(&line, ':', &name))
        problem = "A header field has no colon.";
    else if (name.length == 0 || !is_made_of(name, request_is_token))
        problem = "The name of a header field has a character that no name can have.";
    else if (!is_made_of(line, is_value))
        problem = "A header field has a control character.";
    if (problem != NULL)
        return fail(request, 400, problem);
    request->field_count++;
    request->present |= UINT32_C(1) << field_known(name);
    return true;
}

static size_t count_fields(const struct request *request, enum field_name name)
{
    size_t count = 0, from = 0;
    struct text value;

    while (request_field(request, name, &from, &value))
        count++;
    return count;
}

static bool settle_host(struct request *request)
{
    size_t count = count_fields(request, FIELD_HOST);
    const char *problem = NULL;
    struct text host = {0};

    if (count > 1)
        problem = "The request has more than one Host field.";
    else if (count == 0 && request->minor >= 1)
        problem = "The request has no Host field.";
    else if (request_single(request, FIELD_HOST, &host) && !is_host(host))
        problem = "The Host field holds no valid host.";
    if (problem != NULL)
        return fail(request, 400, problem);
    if (request->host.length == 0)
        request->host = host;
    return true;
}

static bool settle_coding(struct request *request)
{
    size_t from = 0, codings = 0, chunked = 0;
    struct text value, coding = {0};

    while (request_field(request, FIELD_TRANSFER_ENCODING, &from, &value)) {
        while (text_next(&value, &coding)) {
            codings++;
            chunked += text_same(coding, TEXT("chunked"));
        }
    }
    if (request->minor == 0)
        refuse(request, 400, "HTTP/1.0 knows no Transfer-Encoding.");
    else if (codings == 0 || chunked > 1 || (chunked == 1 && !text_same(coding, TEXT("chunked"))))
        refuse(request, 400, "The Transfer-Encoding does not end in one chunked coding.");
    else if (chunked != codings)
        refuse(request, 501, "The only transfer coding known here is chunked.");
    else
        request->framing = FRAMING_CHUNKED;
    return request->status == 0;
}

/* Decides how the body is delimited. Errors here are what request smuggling needs. */
static bool settle_framing(struct request *request)
{
    size_t lengths = count_fields(request, FIELD_CONTENT_LENGTH);
    struct text value;

    if (count_fields(request, FIELD_TRANSFER_ENCODING) > 0) {
        if (lengths == 0)
            return settle_coding(request);
        return fail(request, 400, "The request has both Content-Length and Transfer-Encoding.");
    }
    if (lengths == 0)
        return true;
    if (!request_single(request, FIELD_CONTENT_LENGTH, &value) ||
        !text_number(value, &request->content_length))
        return fail(request, 400, "The request has no single, numeric Content-Length.");
    if (request->content_length > 0)
        request->framing = FRAMING_LENGTH;
    return true;
}

static bool settle_connection(struct request *request)
{
    bool close = false, keep_alive = false;
    size_t from = 0, options = 0;
    struct text value, option;

    while (request_field(request, FIELD_CONNECTION, &from, &value)) {
        for (; text_next(&value, &option); options++) {
            close |= text_same(option, TEXT("close"));
            keep_alive |= text_same(option, TEXT("keep-alive"));
        }
    }
    if (options > REQUEST_FIELD_LIMIT) /* each field is searched for in this list */
        return fail(request, 431, "Connection has more than 100 options.");
    request->keep_alive = !close && (keep_alive || request->minor >= 1);
    return true;
}

static bool settle_expectation(struct request *request)
{
    struct text value;
    size_t from = 0;

    while (request_field(request, FIELD_EXPECT, &from, &value)) {
        if (!text_same(value, TEXT("100-continue")))
            return fail(request, 417, "The only expectation known here is 100-continue.");
        request->expects_continue = request->minor >= 1;
    }
    return true;
}

/* Parses a head, all of which has arrived. */
static enum request_progress read_head(struct request *request, struct text head)
{
    struct text line;
    bool first = true;

    while (take_until(&head, '\n', &line)) {
        line.length--; /* the CR, which scan() has checked */
        if (line.length == 0)
            continue; /* an empty line before the request line, or the last line */
        if (first ? !read_request_line(request, line) : !read_field(request, line))
            return REQUEST_REFUSED;
        if (first)
            request->fields = head;
        first = false;
    }
    if (settle_host(request) && settle_framing(request) && settle_connection(request) &&
        settle_expectation(request))
        return REQUEST_WHOLE;
    return REQUEST_REFUSED;
}

/* Refuses a request line that is too long: for its method, or for its target (RFC 9112, section 3).
 */
static enum request_progress refuse_long_line(struct request *request, const char *line)
{
    struct text start = {line, REQUEST_LINE_LIMIT};

    if (is_made_of(start, request_is_token))
        return refuse(request, 501, "The method is longer than 8 KiB.");
    return refuse(request, 414, "The request line is longer than 8 KiB.");
}

/* Searches for the empty line that ends a head, and checks the line ends. */
static enum request_progress scan(struct request *request, struct text bytes)
{
    const char *data = bytes.data;

    for (; request->scanned < bytes.length; request->scanned++) {
        size_t i = request->scanned, length = i - request->line_start;

        if (i > request->line_start && data[i - 1] == '\r' && data[i] != '\n')
            return refuse(request, 400, "The request has a carriage return within a line.");
        if (data[i] == '\0')
            return refuse(request, 400, "The request has a NUL byte.");
        if (data[i] != '\n')
            continue;
        if (length == 0 || data[i - 1] != '\r')
            return refuse(request, 400, "A line of the request ends without a carriage return.");
        request->line_start = i + 1;
        if (length > 1)
            request->lines++;
        else if (request->lines > 0)
            return REQUEST_WHOLE;
        else if (i >= 8)
            return refuse(request, 400, "The request begins with empty lines.");
        if (request->lines == 1 && length - 1 > REQUEST_LINE_LIMIT) /* without the CR */
            return refuse_long_line(request, data + i - length);
    }
    return REQUEST_PARTIAL;
}

/* Returns the first line that is not empty, as far as it has arrived. */
static struct text first_line(struct text bytes)
{
    size_t from = 0, to;

    while (from < bytes.length && (bytes.data[from] == '\r' || bytes.data[from] == '\n'))
        from++;
    to = from;
    while (to < bytes.length && bytes.data[to] != '\r' && bytes.data[to] != '\n')
        to++;
    return (struct text){bytes.data + from, to - from};
}

/* Searches for the end of the head, and checks the limits of its lines and of the whole. */
static enum request_progress find_end(struct request *request, struct text bytes)
{
    enum request_progress progress = scan(request, bytes);

    if (progress == REQUEST_PARTIAL && request->lines == 0 &&
        request->scanned - request->line_start > REQUEST_LINE_LIMIT + 1)
        return refuse_long_line(request, bytes.data + request->line_start);
    if (progress == REQUEST_PARTIAL && request->scanned == REQUEST_HEAD_LIMIT)
        return refuse(request, 431, "The head of the request is longer than 32 KiB.");
    return progress;
}

enum request_progress request_read(struct request *request, struct text bytes, size_t *taken)
{
    struct text known = {bytes.data,
                         bytes.length < REQUEST_HEAD_LIMIT ? bytes.length : REQUEST_HEAD_LIMIT};
    enum request_progress progress = find_end(request, known);

    if (progress == REQUEST_WHOLE) {
        *taken = request->scanned + 1;
        return read_head(request, (struct text){bytes.data, *taken});
    }
    if (progress == REQUEST_REFUSED)
        request->line = first_line(known); /* for the log */
    return progress;
}

bool request_next(const struct request *request, size_t *from, struct text *name,
                  struct text *value)
{
    return fields_next(request->fields, from, name, value);
}

bool request_field(const struct request *request, enum field_name known, size_t *from,
                   struct text *value)
{
    struct text name;

    if (known >= FIELD_OTHER || !(request->present & UINT32_C(1) << known))
        return false;
    while (request_next(request, from, &name, value))
        if (text_same(name, field_names[known]))
            return true;
    return false;
}

bool request_single(const struct request *request, enum field_name name, struct text *value)
{
    size_t from = 0;
    struct text second;

    return request_field(request, name, &from, value) &&
           !request_field(request, name, &from, &second);
}
