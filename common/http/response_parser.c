/* Parses the head of an origin's response. */
#include "common/http/response_parser.h"

#include "common/http/body_reader.h"
#include "common/http/fields.h"

#include <string.h>

static enum response_parser_progress refuse(struct parsed_response *response, const char *problem)
{
    response->problem = problem;
    return RESPONSE_PARSER_REFUSED;
}

void response_parser_start(struct parsed_response *response)
{
    *response = (struct parsed_response){0};
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static bool is_printable(struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f)
            return false;
    }
    return true;
}

/* Reads "HTTP/1.1 200 OK"; the reason and the blank before it may be missing. */
static bool read_status_line(struct parsed_response *response, struct text line)
{
    const char *data = line.data;

    if (line.length < 12 || memcmp(data, "HTTP/1.", 7) != 0 || !is_digit(data[7]) ||
        data[8] != ' ' || !is_digit(data[9]) || !is_digit(data[10]) || !is_digit(data[11]) ||
        (line.length > 12 && data[12] != ' '))
        return false;
    response->minor = (unsigned)(data[7] - '0');
    response->status = (data[9] - '0') * 100 + (data[10] - '0') * 10 + (data[11] - '0');
    if (line.length > 13)
        response->reason = (struct text){data + 13, line.length - 13};
    if (response->reason.length > RESPONSE_REASON_LIMIT || !is_printable(response->reason))
        response->reason = (struct text){0};
    return response->status >= 100 && response->status < 600;
}

static const char *read_field(struct text line, struct buffer *fields)
{
    size_t colon = text_find(line, ':');
    struct text name =
        text_trim((struct text){line.data, colon}); /* blanks may precede the colon */

    if (line.data[0] == ' ' || line.data[0] == '\t')
        return "A header field of the origin's response is folded over several lines.";
    if (colon == line.length || name.length == 0)
        return "A header field of the origin's response has no name.";
    for (size_t i = 0; i < name.length; i++)
        if (!request_is_token(name.data[i]))
            return "The name of a header field of the origin's response has a character that "
                   "no name can have.";
    line = text_trim((struct text){line.data + colon + 1, line.length - colon - 1});
    if (!is_printable(line))
        return "A header field of the origin's response has a control character.";
    fields_add(fields, name, line);
    return fields->overflow ? "The head of the origin's response is too long." : NULL;
}

/* Reads Content-Length; several lengths must be equal. */
static bool read_length(struct parsed_response *response)
{
    struct text value, element;
    uint64_t length;
    size_t from = 0;

    while (fields_find(response->fields, TEXT("Content-Length"), &from, &value)) {
        size_t count = 0;
        for (; text_next(&value, &element); count++) {
            if (!text_number(element, &length) ||
                (response->has_length && length != response->content_length))
                return false;
            response->has_length = true;
            response->content_length = length;
        }
        if (count == 0)
            return false;
    }
    return true;
}

static bool is_chunked_alone(struct text fields)
{
    struct text value, coding;
    size_t from = 0, codings = 0;

    while (fields_find(fields, TEXT("Transfer-Encoding"), &from, &value))
        while (text_next(&value, &coding))
            codings += text_same(coding, TEXT("chunked")) ? 1 : 2;
    return codings == 1;
}

/* Each field is searched for in these lists, whose elements may be quoted. */
static bool names_too_many(struct text fields, struct text list)
{
    struct text value;
    size_t from = 0, names = 0;

    for (; fields_find(fields, list, &from, &value); names++)
        for (size_t i = 0; i < value.length; i++)
            names += value.data[i] == ',';
    return names > RESPONSE_FIELD_LIMIT;
}

static const char *settle_framing(struct parsed_response *response, enum method method)
{
    bool coded = fields_has(response->fields, TEXT("Transfer-Encoding"));

    if (!read_length(response))
        return "The origin's response has no single, numeric Content-Length.";
    if (coded && (response->has_length || response->minor == 0))
        return "The origin's response says in two ways how long it is.";
    if (coded && !is_chunked_alone(response->fields))
        return "The origin's response has a transfer coding that was not asked for.";
    if (method == METHOD_HEAD || response->status < 200 || response->status == 204 ||
        response->status == 304)
        return NULL; /* these never have a body */
    if (response->content_length > BODY_READER_LIMIT_ANY)
        return "The origin's response is longer than any body can be.";
    if (coded)
        response->framing = FRAMING_CHUNKED;
    else if (response->has_length)
        response->framing = response->content_length > 0 ? FRAMING_LENGTH : FRAMING_NONE;
    else
        response->until_close = true;
    return NULL;
}

static enum response_parser_progress read_head(struct parsed_response *response, enum method method,
                                               struct text head, struct buffer *fields)
{
    const char *problem = NULL;
    size_t count = 0, reason;
    struct text line;

    fields->length = 0;
    fields->overflow = false;
    if (!text_line(&head, &line) || !read_status_line(response, line))
        return refuse(response, "The origin does not answer in HTTP/1.");
    buffer_add(fields, response->reason);
    reason = fields->length;
    response->reason = (struct text){fields->data, reason};
    while (problem == NULL && text_line(&head, &line) && line.length > 0) {
        problem = read_field(line, fields);
        if (++count > RESPONSE_FIELD_LIMIT)
            problem = "The origin's response has more than 200 header fields.";
    }
    if (problem != NULL)
        return refuse(response, problem);
    response->fields = (struct text){fields->data + reason, fields->length - reason};
    if (names_too_many(response->fields, TEXT("Connection")) ||
        names_too_many(response->fields, TEXT("Vary")) ||
        names_too_many(response->fields, TEXT("Cache-Control")))
        return refuse(response, "The origin's response names more than 200 fields.");
    problem = settle_framing(response, method);
    return problem != NULL ? refuse(response, problem) : RESPONSE_PARSER_WHOLE;
}

/* Searches for the empty line that ends a head. Lines may end without a carriage return; the proxy
 * adds it. */
static enum response_parser_progress scan(struct parsed_response *response, struct text bytes)
{
    for (; response->scanned < bytes.length; response->scanned++) {
        size_t i = response->scanned;
        bool after_return = i > response->line_start && bytes.data[i - 1] == '\r';

        if (bytes.data[i] == '\0' || (after_return && bytes.data[i] != '\n'))
            return refuse(response, "The head of the origin's response has a control character.");
        if (bytes.data[i] != '\n')
            continue;
        if (i == response->line_start + (after_return ? 1 : 0))
            return RESPONSE_PARSER_WHOLE;
        response->line_start = i + 1;
    }
    return RESPONSE_PARSER_PARTIAL;
}

enum response_parser_progress response_parser_read(struct parsed_response *response,
                                                   enum method method, struct text bytes,
                                                   struct buffer *fields, size_t *taken)
{
    struct text known = {bytes.data,
                         bytes.length < RESPONSE_HEAD_LIMIT ? bytes.length : RESPONSE_HEAD_LIMIT};
    enum response_parser_progress progress = scan(response, known);

    if (progress == RESPONSE_PARSER_WHOLE) {
        *taken = response->scanned + 1;
        return read_head(response, method, (struct text){bytes.data, *taken}, fields);
    }
    if (progress == RESPONSE_PARSER_PARTIAL && known.length == RESPONSE_HEAD_LIMIT)
        return refuse(response, "The head of the origin's response is longer than 32 KiB.");
    return progress;
}
