/* Reads a body that is framed by Content-Length or by chunks. */
#include "common/http/body_reader.h"

#define OVERHEAD_LIMIT 16384
/* Some origins send chunks of a single byte. */
#define ALLOWANCE_ANY 8

static enum body_reader_progress refuse(struct body_reader *body_reader, int status,
                                        const char *problem)
{
    body_reader->status = status;
    body_reader->problem = problem;
    return BODY_READER_REFUSED;
}

void body_reader_begin(struct body_reader *body_reader, enum framing framing, uint64_t length,
                       uint64_t limit)
{
    *body_reader = (struct body_reader){
        .chunked = framing == FRAMING_CHUNKED,
        .state = framing == FRAMING_CHUNKED ? BODY_READER_SIZE_FIRST : BODY_READER_DATA,
        .remaining = framing == FRAMING_LENGTH ? length : 0,
        .allowance = ALLOWANCE_ANY,
        .limit = limit < BODY_READER_LIMIT_ANY ? limit : BODY_READER_LIMIT_ANY,
    };
}

void body_reader_start(struct body_reader *body_reader, const struct request *request)
{
    body_reader_begin(body_reader, request->framing, request->content_length, BODY_READER_LIMIT);
    body_reader->allowance = 1;
}

static enum body_reader_progress take_data(struct body_reader *body_reader, struct text *bytes,
                                           struct text *data)
{
    size_t skip =
        bytes->length < body_reader->remaining ? bytes->length : (size_t)body_reader->remaining;

    *data = (struct text){bytes->data, skip};
    bytes->data += skip;
    bytes->length -= skip;
    body_reader->remaining -= skip;
    body_reader->gap = 0;
    if (body_reader->remaining > 0)
        return BODY_READER_PARTIAL;
    if (!body_reader->chunked)
        return BODY_READER_WHOLE;
    body_reader->state = BODY_READER_DATA_CR;
    return BODY_READER_PARTIAL;
}

static enum body_reader_progress add_digit(struct body_reader *body_reader, char character)
{
    int digit = text_hex(character);

    if (digit < 0)
        return refuse(body_reader, 400, "The size of a chunk is no hexadecimal number.");
    body_reader->remaining = body_reader->remaining << 4 | (unsigned)digit;
    if (body_reader->total + body_reader->remaining > body_reader->limit)
        return refuse(body_reader, 413, "The body of the request is longer than is allowed here.");
    body_reader->state = BODY_READER_SIZE;
    return BODY_READER_PARTIAL;
}

static enum body_reader_progress end_size(struct body_reader *body_reader)
{
    body_reader->total += body_reader->remaining;
    body_reader->state = body_reader->remaining > 0 ? BODY_READER_DATA : BODY_READER_TRAILER_START;
    return BODY_READER_PARTIAL;
}

static enum body_reader_progress expect(struct body_reader *body_reader, char character,
                                        char expected, enum body_reader_state next)
{
    if (character != expected)
        return refuse(body_reader, 400, "The chunks of the body are not framed as chunks.");
    body_reader->state = next;
    return BODY_READER_PARTIAL;
}

static bool is_control(char character)
{
    return ((unsigned char)character < ' ' && character != '\t') || character == 0x7f;
}

/* Skips a character of an extension or a trailer. */
static enum body_reader_progress skip_text(struct body_reader *body_reader, char character,
                                           enum body_reader_state same,
                                           enum body_reader_state after_cr)
{
    body_reader->state = same;
    if (character == '\r')
        body_reader->state = after_cr;
    else if (is_control(character))
        return refuse(body_reader, 400, "The chunks of the body have a control character.");
    return BODY_READER_PARTIAL;
}

static enum body_reader_progress read_extension(struct body_reader *body_reader, char character)
{
    if (character == '"') {
        body_reader->state = BODY_READER_QUOTED;
        return BODY_READER_PARTIAL;
    }
    return skip_text(body_reader, character, BODY_READER_EXTENSION, BODY_READER_SIZE_END);
}

static enum body_reader_progress read_quoted(struct body_reader *body_reader, char character)
{
    if (is_control(character))
        return refuse(body_reader, 400, "The chunks of the body have a control character.");
    if (body_reader->state == BODY_READER_ESCAPED)
        body_reader->state = BODY_READER_QUOTED;
    else if (character == '\\')
        body_reader->state = BODY_READER_ESCAPED;
    else if (character == '"')
        body_reader->state = BODY_READER_EXTENSION;
    return BODY_READER_PARTIAL;
}

static enum body_reader_progress read_name(struct body_reader *body_reader, char character,
                                           bool first)
{
    if (character == ':' && !first)
        body_reader->state = BODY_READER_TRAILER;
    else if (!request_is_token(character))
        return refuse(body_reader, 400,
                      "The name of a trailer field has a character that no name can have.");
    return BODY_READER_PARTIAL;
}

static enum body_reader_progress read_character(struct body_reader *body_reader, char character)
{
    switch (body_reader->state) {
    case BODY_READER_SIZE_FIRST:
        body_reader->remaining = 0;
        return add_digit(body_reader, character);
    case BODY_READER_SIZE:
        if (character == '\r')
            return expect(body_reader, character, '\r', BODY_READER_SIZE_END);
        if (character == ';')
            return expect(body_reader, character, ';', BODY_READER_EXTENSION);
        return add_digit(body_reader, character);
    case BODY_READER_EXTENSION:
        return read_extension(body_reader, character);
    case BODY_READER_QUOTED:
    case BODY_READER_ESCAPED:
        return read_quoted(body_reader, character);
    case BODY_READER_SIZE_END:
        if (character != '\n')
            return expect(body_reader, character, '\n', BODY_READER_DATA);
        return end_size(body_reader);
    case BODY_READER_DATA_CR:
        return expect(body_reader, character, '\r', BODY_READER_DATA_LF);
    case BODY_READER_DATA_LF:
        return expect(body_reader, character, '\n', BODY_READER_SIZE_FIRST);
    case BODY_READER_TRAILER_START:
        if (character == '\r')
            return expect(body_reader, character, '\r', BODY_READER_END_LF);
        body_reader->state = BODY_READER_TRAILER_NAME;
        return read_name(body_reader, character, true);
    case BODY_READER_TRAILER_NAME:
        return read_name(body_reader, character, false);
    case BODY_READER_TRAILER:
        return skip_text(body_reader, character, BODY_READER_TRAILER, BODY_READER_TRAILER_LF);
    case BODY_READER_TRAILER_LF:
        return expect(body_reader, character, '\n', BODY_READER_TRAILER_START);
    case BODY_READER_END_LF:
        if (character == '\n')
            return BODY_READER_WHOLE;
        return expect(body_reader, character, '\n', BODY_READER_END_LF);
    case BODY_READER_DATA:
        break;
    }
    return BODY_READER_PARTIAL;
}

enum body_reader_progress body_reader_take(struct body_reader *body_reader, struct text *bytes,
                                           struct text *data)
{
    enum body_reader_progress progress = BODY_READER_PARTIAL;

    *data = (struct text){0};
    if (!body_reader->chunked && body_reader->remaining > body_reader->limit)
        return refuse(body_reader, 413, "The body of the request is longer than is allowed here.");
    if (!body_reader->chunked)
        return take_data(body_reader, bytes, data);
    while (progress == BODY_READER_PARTIAL && bytes->length > 0) {
        if (body_reader->state == BODY_READER_DATA)
            return take_data(body_reader, bytes, data);
        if (++body_reader->overhead >
                OVERHEAD_LIMIT + body_reader->total * body_reader->allowance ||
            ++body_reader->gap > OVERHEAD_LIMIT)
            return refuse(body_reader, 431, "The chunks of the body are mostly overhead.");
        progress = read_character(body_reader, bytes->data[0]);
        bytes->data++;
        bytes->length--;
    }
    return progress;
}

enum body_reader_progress body_reader_read(struct body_reader *body_reader, struct text *bytes)
{
    enum body_reader_progress progress;
    struct text data;

    do
        progress = body_reader_take(body_reader, bytes, &data);
    while (progress == BODY_READER_PARTIAL && data.length > 0);
    return progress;
}
