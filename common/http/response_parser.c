#include "common/http/response_parser.h"

#include "common/http/body_reader.h"
#include "common/http/fields.h"

#include <string.h>

static enum reply_progress refuse(struct reply *reply, const char *problem)
{
    reply->problem = problem;
    return REPLY_REFUSED;
}

void reply_start(struct reply *reply)
{
    *reply = (struct reply){0};
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

/* "HTTP/1.1 200 OK"; the reason may be missing, and the blank before it, too. */
static bool read_status_line(struct reply *reply, struct text line)
{
    const char *data = line.data;

    if (line.length < 12 || memcmp(data, "HTTP/1.", 7) != 0 || !is_digit(data[7]) ||
        data[8] != ' ' || !is_digit(data[9]) || !is_digit(data[10]) || !is_digit(data[11]) ||
        (line.length > 12 && data[12] != ' '))
        return false;
    reply->minor = (unsigned)(data[7] - '0');
    reply->status = (data[9] - '0') * 100 + (data[10] - '0') * 10 + (data[11] - '0');
    if (line.length > 13)
        reply->reason = (struct text){data + 13, line.length - 13};
    if (reply->reason.length > REPLY_REASON_LIMIT || !is_printable(reply->reason))
        reply->reason = (struct text){0};
    return reply->status >= 100 && reply->status < 600;
}

static const char *read_field(struct text line, struct buffer *fields)
{
    size_t colon = text_find(line, ':');
    struct text name = text_trim((struct text){line.data, colon}); /* blanks before the colon */

    if (line.data[0] == ' ' || line.data[0] == '\t')
        return "A header field of the origin's reply is folded over several lines.";
    if (colon == line.length || name.length == 0)
        return "A header field of the origin's reply has no name.";
    for (size_t i = 0; i < name.length; i++)
        if (!request_is_token(name.data[i]))
            return "The name of a header field of the origin's reply has a character that no name "
                   "can have.";
    line = text_trim((struct text){line.data + colon + 1, line.length - colon - 1});
    if (!is_printable(line))
        return "A header field of the origin's reply has a control character.";
    fields_add(fields, name, line);
    return fields->overflow ? "The head of the origin's reply is too long." : NULL;
}

/* Several lengths are one if they are equal. */
static bool read_length(struct reply *reply)
{
    struct text value, element;
    uint64_t length;
    size_t from = 0;

    while (fields_find(reply->fields, TEXT("Content-Length"), &from, &value)) {
        size_t count = 0;
        for (; text_next(&value, &element); count++) {
            if (!text_number(element, &length) ||
                (reply->has_length && length != reply->content_length))
                return false;
            reply->has_length = true;
            reply->content_length = length;
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

/* Each field is looked for among what these name, in quotes or not. */
static bool names_too_many(struct text fields, struct text list)
{
    struct text value;
    size_t from = 0, names = 0;

    for (; fields_find(fields, list, &from, &value); names++)
        for (size_t i = 0; i < value.length; i++)
            names += value.data[i] == ',';
    return names > REPLY_FIELD_LIMIT;
}

static const char *settle_framing(struct reply *reply, enum method method)
{
    bool coded = fields_has(reply->fields, TEXT("Transfer-Encoding"));

    if (!read_length(reply))
        return "The origin's reply has no single, numeric Content-Length.";
    if (coded && (reply->has_length || reply->minor == 0))
        return "The origin's reply says in two ways how long it is.";
    if (coded && !is_chunked_alone(reply->fields))
        return "The origin's reply has a transfer coding that was not asked for.";
    if (method == METHOD_HEAD || reply->status < 200 || reply->status == 204 ||
        reply->status == 304)
        return NULL; /* never a body */
    if (reply->content_length > CONTENT_LIMIT_ANY)
        return "The origin's reply is longer than any body can be.";
    if (coded)
        reply->framing = FRAMING_CHUNKED;
    else if (reply->has_length)
        reply->framing = reply->content_length > 0 ? FRAMING_LENGTH : FRAMING_NONE;
    else
        reply->until_close = true;
    return NULL;
}

static enum reply_progress read_head(struct reply *reply, enum method method, struct text head,
                                     struct buffer *fields)
{
    const char *problem = NULL;
    size_t count = 0, reason;
    struct text line;

    fields->length = 0;
    fields->overflow = false;
    if (!text_line(&head, &line) || !read_status_line(reply, line))
        return refuse(reply, "The origin does not answer in HTTP/1.");
    buffer_add(fields, reply->reason);
    reason = fields->length;
    reply->reason = (struct text){fields->data, reason};
    while (problem == NULL && text_line(&head, &line) && line.length > 0) {
        problem = read_field(line, fields);
        if (++count > REPLY_FIELD_LIMIT)
            problem = "The origin's reply has more than 200 header fields.";
    }
    if (problem != NULL)
        return refuse(reply, problem);
    reply->fields = (struct text){fields->data + reason, fields->length - reason};
    if (names_too_many(reply->fields, TEXT("Connection")) ||
        names_too_many(reply->fields, TEXT("Vary")) ||
        names_too_many(reply->fields, TEXT("Cache-Control")))
        return refuse(reply, "The origin's reply names more than 200 fields.");
    problem = settle_framing(reply, method);
    return problem != NULL ? refuse(reply, problem) : REPLY_WHOLE;
}

/* Looks for the empty line that ends a head. A line may end without a carriage return: it is passed
 * on with one. */
static enum reply_progress scan(struct reply *reply, struct text bytes)
{
    for (; reply->scanned < bytes.length; reply->scanned++) {
        size_t i = reply->scanned;
        bool after_return = i > reply->line_start && bytes.data[i - 1] == '\r';

        if (bytes.data[i] == '\0' || (after_return && bytes.data[i] != '\n'))
            return refuse(reply, "The head of the origin's reply has a control character.");
        if (bytes.data[i] != '\n')
            continue;
        if (i == reply->line_start + (after_return ? 1 : 0))
            return REPLY_WHOLE;
        reply->line_start = i + 1;
    }
    return REPLY_PARTIAL;
}

enum reply_progress reply_read(struct reply *reply, enum method method, struct text bytes,
                               struct buffer *fields, size_t *taken)
{
    struct text known = {bytes.data,
                         bytes.length < REPLY_HEAD_LIMIT ? bytes.length : REPLY_HEAD_LIMIT};
    enum reply_progress progress = scan(reply, known);

    if (progress == REPLY_WHOLE) {
        *taken = reply->scanned + 1;
        return read_head(reply, method, (struct text){bytes.data, *taken}, fields);
    }
    if (progress == REPLY_PARTIAL && known.length == REPLY_HEAD_LIMIT)
        return refuse(reply, "The head of the origin's reply is longer than 32 KiB.");
    return progress;
}
