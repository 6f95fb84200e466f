/* Fuzzes the responses of an origin: however the bytes are cut, the proxy reads the same response,
 * and forwards well-formed fields only. */
#include "common/http/fields.h"
#include "common/proxy/cache_part.h"
#include "common/proxy/origin_connection.h"
#include "common/proxy/rewrite.h"
#include "tests/fuzz.h"
#include "tests/script.h"

/* No origin may send more interim responses than this here. */
#define HEADS 20

/* Reads until something has come. */
static enum transfer read_head(struct origin_connection *connection)
{
    enum transfer transfer;

    do
        transfer = origin_connection_head(connection, METHOD_GET);
    while (transfer == TRANSFER_READ);
    return transfer;
}

/* Reads a part of a body. What is not read together with the head is read into this room. */
static enum transfer read_body(struct origin_connection *connection, struct text *data)
{
    static char space[7];
    const struct buffer room = {.data = space, .capacity = sizeof space};
    enum transfer transfer;

    do
        transfer = origin_connection_body(connection, &room, data);
    while (transfer == TRANSFER_READ);
    return transfer;
}

/* Requires that all forwarded lines are fields. */
static void check_fields(struct text fields)
{
    size_t room = 2 * fields.length + 1024, from = 0;
    struct buffer output = {.data = malloc(room), .capacity = room};
    struct text name, value, lines;
    struct cache_span span;

    require(!cache_part_read_span(fields, &span) ||
                (span.range.first < span.range.end && span.range.end <= span.whole),
            "a part lies in the whole");
    require(output.data != NULL, "there is memory");
    rewrite_fields(fields, (struct text){0}, &output);
    lines = (struct text){output.data, output.length};
    while (fields_next(lines, &from, &name, &value))
        require(name.length > 0 && text_find(value, '\r') == value.length &&
                    text_find(value, '\n') == value.length &&
                    text_find(value, '\0') == value.length,
                "a field has a name, and a value of one line");
    require(!output.overflow && from == lines.length, "all that goes on is fields");
    free(output.data);
}

static void note_number(struct buffer *notes, const char *name, uint64_t number)
{
    buffer_string(notes, name);
    buffer_number(notes, number);
}

/* Reads heads until a final one; false if there is none. */
static bool read_heads(struct origin_connection *connection, struct buffer *notes)
{
    for (int heads = 0; heads < HEADS; heads++) {
        enum transfer transfer = read_head(connection);
        note_number(notes, "\nhead ", transfer);
        if (transfer != TRANSFER_DONE)
            return false;
        note_number(notes, " status ", (uint64_t)connection->response.status);
        buffer_add(notes, connection->response.reason);
        buffer_add(notes, connection->response.fields);
        check_fields(connection->response.fields);
        if (connection->response.status >= 200)
            return true;
    }
    return false;
}

/* Reads all that the origin sends, in pieces. Returns notes of all that was read. */
static struct text read_all(const char *bytes, size_t size, size_t piece)
{
    static struct origin_connection connection;
    size_t room = 65536 + 8 * size;
    struct buffer notes = {.data = malloc(room), .capacity = room};
    enum transfer transfer = TRANSFER_DONE;

    require(notes.data != NULL, "there is memory");
    script_start(bytes, size, piece);
    origin_connection_start(&connection);
    connection.transport = (struct transport){.kind = &scripted, .socket = 0};
    if (read_heads(&connection, &notes)) {
        buffer_string(&notes, "\nbody ");
        while (transfer == TRANSFER_DONE) {
            struct text data;
            transfer = read_body(&connection, &data);
            if (transfer == TRANSFER_DONE)
                buffer_add(&notes, data);
        }
        note_number(&notes, connection.whole ? "\nwhole " : "\nbroken ", transfer);
    }
    require(!notes.overflow, "no more is read than was sent");
    connection.transport.socket = -1;
    return (struct text){notes.data, notes.length};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 2, 3, 17, 1000};
    char *copy = copy_of((const char *)data, size);
    struct text whole = read_all(copy, size, 100000);

    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        struct text cut = read_all(copy, size, pieces[i]);
        require(text_equal(whole, cut), "a response is the same however it is cut");
        free((char *)cut.data);
    }
    free((char *)whole.data);
    free(copy);
    return 0;
}

const char *const fuzz_seeds[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n"
    "Transfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n0\r\nA: b\r\n\r\n",
    "HTTP/1.0 200\r\nA: b\r\n\r\nuntil the end",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\nConnection: x, close\r\nX: "
    "y\r\n\r\n"
    "abc",
    "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nSet-Cookie: c\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
};
const size_t fuzz_seed_count = COUNT_OF(fuzz_seeds);
const char fuzz_subject[] = "what an origin sends, each cut in six ways";
const long fuzz_rounds = 12500;
