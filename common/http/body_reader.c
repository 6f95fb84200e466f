#include "common/http/body_reader.h"

#define OVERHEAD_LIMIT 16384
/* Enough for chunks of a single byte, which some origins send. */
#define ALLOWANCE_ANY 8

static enum content_progress refuse(struct content *content, int status, const char *problem)
{
    content->status = status;
    content->problem = problem;
    return CONTENT_REFUSED;
}

void content_begin(struct content *content, enum framing framing, uint64_t length, uint64_t limit)
{
    *content = (struct content){
        .chunked = framing == FRAMING_CHUNKED,
        .state = framing == FRAMING_CHUNKED ? CONTENT_SIZE_FIRST : CONTENT_DATA,
        .remaining = framing == FRAMING_LENGTH ? length : 0,
        .allowance = ALLOWANCE_ANY,
        .limit = limit < CONTENT_LIMIT_ANY ? limit : CONTENT_LIMIT_ANY,
    };
}

void content_start(struct content *content, const struct request *request)
{
    content_begin(content, request->framing, request->content_length, CONTENT_LIMIT);
    content->allowance = 1;
}

static enum content_progress take_data(struct content *content, struct text *bytes,
                                       struct text *data)
{
    size_t skip = bytes->length < content->remaining ? bytes->length : (size_t)content->remaining;

    *data = (struct text){bytes->data, skip};
    bytes->data += skip;
    bytes->length -= skip;
    content->remaining -= skip;
    content->gap = 0;
    if (content->remaining > 0)
        return CONTENT_PARTIAL;
    if (!content->chunked)
        return CONTENT_WHOLE;
    content->state = CONTENT_DATA_CR;
    return CONTENT_PARTIAL;
}

static enum content_progress add_digit(struct content *content, char character)
{
    int digit = text_hex(character);

    if (digit < 0)
        return refuse(content, 400, "The size of a chunk is no hexadecimal number.");
    content->remaining = content->remaining << 4 | (unsigned)digit;
    if (content->total + content->remaining > content->limit)
        return refuse(content, 413, "The body of the request is longer than is allowed here.");
    content->state = CONTENT_SIZE;
    return CONTENT_PARTIAL;
}

static enum content_progress end_size(struct content *content)
{
    content->total += content->remaining;
    content->state = content->remaining > 0 ? CONTENT_DATA : CONTENT_TRAILER_START;
    return CONTENT_PARTIAL;
}

static enum content_progress expect(struct content *content, char character, char expected,
                                    enum content_state next)
{
    if (character != expected)
        return refuse(content, 400, "The chunks of the body are not framed as chunks.");
    content->state = next;
    return CONTENT_PARTIAL;
}

static bool is_control(char character)
{
    return ((unsigned char)character < ' ' && character != '\t') || character == 0x7f;
}

/* Within an extension or a trailer, which are skipped. */
static enum content_progress skip_text(struct content *content, char character,
                                       enum content_state same, enum content_state after_cr)
{
    content->state = same;
    if (character == '\r')
        content->state = after_cr;
    else if (is_control(character))
        return refuse(content, 400, "The chunks of the body have a control character.");
    return CONTENT_PARTIAL;
}

static enum content_progress read_extension(struct content *content, char character)
{
    if (character == '"') {
        content->state = CONTENT_QUOTED;
        return CONTENT_PARTIAL;
    }
    return skip_text(content, character, CONTENT_EXTENSION, CONTENT_SIZE_END);
}

static enum content_progress read_quoted(struct content *content, char character)
{
    if (is_control(character))
        return refuse(content, 400, "The chunks of the body have a control character.");
    if (content->state == CONTENT_ESCAPED)
        content->state = CONTENT_QUOTED;
    else if (character == '\\')
        content->state = CONTENT_ESCAPED;
    else if (character == '"')
        content->state = CONTENT_EXTENSION;
    return CONTENT_PARTIAL;
}

static enum content_progress read_name(struct content *content, char character, bool first)
{
    if (character == ':' && !first)
        content->state = CONTENT_TRAILER;
    else if (!request_is_token(character))
        return refuse(content, 400,
                      "The name of a trailer field has a character that no name can have.");
    return CONTENT_PARTIAL;
}

static enum content_progress read_character(struct content *content, char character)
{
    switch (content->state) {
    case CONTENT_SIZE_FIRST:
        content->remaining = 0;
        return add_digit(content, character);
    case CONTENT_SIZE:
        if (character == '\r')
            return expect(content, character, '\r', CONTENT_SIZE_END);
        if (character == ';')
            return expect(content, character, ';', CONTENT_EXTENSION);
        return add_digit(content, character);
    case CONTENT_EXTENSION:
        return read_extension(content, character);
    case CONTENT_QUOTED:
    case CONTENT_ESCAPED:
        return read_quoted(content, character);
    case CONTENT_SIZE_END:
        if (character != '\n')
            return expect(content, character, '\n', CONTENT_DATA);
        return end_size(content);
    case CONTENT_DATA_CR:
        return expect(content, character, '\r', CONTENT_DATA_LF);
    case CONTENT_DATA_LF:
        return expect(content, character, '\n', CONTENT_SIZE_FIRST);
    case CONTENT_TRAILER_START:
        if (character == '\r')
            return expect(content, character, '\r', CONTENT_END_LF);
        content->state = CONTENT_TRAILER_NAME;
        return read_name(content, character, true);
    case CONTENT_TRAILER_NAME:
        return read_name(content, character, false);
    case CONTENT_TRAILER:
        return skip_text(content, character, CONTENT_TRAILER, CONTENT_TRAILER_LF);
    case CONTENT_TRAILER_LF:
        return expect(content, character, '\n', CONTENT_TRAILER_START);
    case CONTENT_END_LF:
        if (character == '\n')
            return CONTENT_WHOLE;
        return expect(content, character, '\n', CONTENT_END_LF);
    case CONTENT_DATA:
        break;
    }
    return CONTENT_PARTIAL;
}

enum content_progress content_take(struct content *content, struct text *bytes, struct text *data)
{
    enum content_progress progress = CONTENT_PARTIAL;

    *data = (struct text){0};
    if (!content->chunked && content->remaining > content->limit)
        return refuse(content, 413, "The body of the request is longer than is allowed here.");
    if (!content->chunked)
        return take_data(content, bytes, data);
    while (progress == CONTENT_PARTIAL && bytes->length > 0) {
        if (content->state == CONTENT_DATA)
            return take_data(content, bytes, data);
        if (++content->overhead > OVERHEAD_LIMIT + content->total * content->allowance ||
            ++content->gap > OVERHEAD_LIMIT)
            return refuse(content, 431, "The chunks of the body are mostly overhead.");
        progress = read_character(content, bytes->data[0]);
        bytes->data++;
        bytes->length--;
    }
    return progress;
}

enum content_progress content_read(struct content *content, struct text *bytes)
{
    enum content_progress progress;
    struct text data;

    do
        progress = content_take(content, bytes, &data);
    while (progress == CONTENT_PARTIAL && data.length > 0);
    return progress;
}
