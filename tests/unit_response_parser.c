/* Tests of response_parser.c: how heads are parsed, and which are refused, however the bytes are
 * cut.
 */
#include "common/http/response_parser.h"

#include "tests/unit.h"

#include <stdlib.h>
#include <string.h>

#define OK "HTTP/1.1 200 OK\r\n"

struct head_case {
    const char *name; /* the head */
    const char *fields;
    int status;
    enum framing framing;
    bool until_close;
    uint64_t length;
    enum method method;
};

static const struct head_case heads[] = {
    {OK "\r\n", "", 200, FRAMING_NONE, true, 0, METHOD_GET},
    {OK "A: b\r\n\r\n", "A: b\r\n", 200, FRAMING_NONE, true, 0, METHOD_GET},
    {OK "A:b\r\n\r\n", "A: b\r\n", 200, FRAMING_NONE, true, 0, METHOD_GET},
    {OK "A:\r\n\r\n", "A: \r\n", 200, FRAMING_NONE, true, 0, METHOD_GET},
    {OK "A :  b \t\r\n\r\n", "A: b\r\n", 200, FRAMING_NONE, true, 0, METHOD_GET},
    {"HTTP/1.1 200 OK\nA: b\n\n", "A: b\r\n", 200, FRAMING_NONE, true, 0, METHOD_GET},
    {"HTTP/1.0 404\r\n\r\n", "", 404, FRAMING_NONE, true, 0, METHOD_GET},
    {"HTTP/1.1 404 \r\n\r\n", "", 404, FRAMING_NONE, true, 0, METHOD_GET},
    {"HTTP/1.1 204 No\r\n\r\n", "", 204, FRAMING_NONE, false, 0, METHOD_GET},
    {"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n", "Content-Length: 5\r\n", 304, FRAMING_NONE,
     false, 5, METHOD_GET},
    {"HTTP/1.1 100 Go on\r\n\r\n", "", 100, FRAMING_NONE, false, 0, METHOD_GET},
    {OK "Content-Length: 5\r\n\r\n", "Content-Length: 5\r\n", 200, FRAMING_LENGTH, false, 5,
     METHOD_GET},
    {OK "Content-Length: 5\r\n\r\n", "Content-Length: 5\r\n", 200, FRAMING_NONE, false, 5,
     METHOD_HEAD},
    {OK "\r\n", "", 200, FRAMING_NONE, false, 0, METHOD_HEAD},
    {OK "Content-Length: 18446744073709551615\r\n\r\n", "Content-Length: 18446744073709551615\r\n",
     200, FRAMING_NONE, false, UINT64_MAX, METHOD_HEAD},
    {OK "Content-Length: 0\r\n\r\n", "Content-Length: 0\r\n", 200, FRAMING_NONE, false, 0,
     METHOD_GET},
    {OK "Content-Length: 5, 5\r\n\r\n", "Content-Length: 5, 5\r\n", 200, FRAMING_LENGTH, false, 5,
     METHOD_GET},
    {OK "Content-Length: 5\r\ncontent-length: 5\r\n\r\n",
     "Content-Length: 5\r\ncontent-length: 5\r\n", 200, FRAMING_LENGTH, false, 5, METHOD_GET},
    {OK "Transfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\n", 200,
     FRAMING_CHUNKED, false, 0, METHOD_GET},
    {OK "Transfer-Encoding: Chunked\r\n\r\n", "Transfer-Encoding: Chunked\r\n", 200,
     FRAMING_CHUNKED, false, 0, METHOD_GET},
};

/* Reads the head in two pieces, cut at each place. */
static void check_head(void **state)
{
    const struct head_case *row = *state;
    size_t length = strlen(row->name), taken;

    for (size_t cut = 0; cut <= length; cut++) {
        char space[512];
        struct buffer fields = {.data = space, .capacity = sizeof space};
        struct parsed_response response;
        response_parser_start(&response);
        if (cut < length)
            assert_int_equal(response_parser_read(&response, row->method,
                                                  (struct text){row->name, cut}, &fields, &taken),
                             RESPONSE_PARSER_PARTIAL);
        assert_int_equal(
            response_parser_read(&response, row->method, text_of(row->name), &fields, &taken),
            RESPONSE_PARSER_WHOLE);
        assert_int_equal(taken, length);
        assert_int_equal(response.status, row->status);
        assert_int_equal(response.framing, row->framing);
        assert_int_equal(response.until_close, row->until_close);
        assert_int_equal(response.content_length, row->length);
        assert_true(text_equal(response.fields, text_of(row->fields)));
    }
}

struct refused_case {
    const char *name; /* the head */
};

static const struct refused_case refused[] = {
    {"\r\n"},
    {"HTTP/2.0 200 OK\r\n\r\n"},
    {"HTTP/0.9 200 OK\r\n\r\n"},
    {"HTTP/1.1 099 OK\r\n\r\n"},
    {"HTTP/1.1 600 OK\r\n\r\n"},
    {"HTTP/1.1 20 OK\r\n\r\n"},
    {"HTTP/1.1 2000 OK\r\n\r\n"},
    {"HTTP/1.1  200 OK\r\n\r\n"},
    {"HTTP/1.10 200 OK\r\n\r\n"},
    {"http/1.1 200 OK\r\n\r\n"},
    {"ICY 200 OK........\r\n\r\n"},
    {"<html>............</html>\r\n\r\n"},
    {OK "A: b\r\n c\r\n\r\n"},
    {OK " A: b\r\n\r\n"},
    {OK "A\r\n\r\n"},
    {OK ": b\r\n\r\n"},
    {OK "A b: c\r\n\r\n"},
    {OK "A: b\rC: d\r\n\r\n"},
    {OK "A: b\r\r\n\r\n"},
    {OK "A: \x01\r\n\r\n"},
    {OK "A: \x7f\r\n\r\n"},
    {OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"},
    {OK "Content-Length: 5, 6\r\n\r\n"},
    {OK "Content-Length: 5,\r\nContent-Length: x\r\n\r\n"},
    {OK "Content-Length: -5\r\n\r\n"},
    {OK "Content-Length: +5\r\n\r\n"},
    {OK "Content-Length: 5 6\r\n\r\n"},
    {OK "Content-Length: 0x5\r\n\r\n"},
    {OK "Content-Length:\r\n\r\n"},
    {OK "Content-Length: ,\r\n\r\n"},
    {OK "Content-Length: 5\r\nContent-Length: ,\r\n\r\n"},
    {OK "Content-Length: \"5\"\r\n\r\n"},
    {OK "Content-Length: 18446744073709551615\r\n\r\n"},
    {OK "Content-Length: 99999999999999999999\r\n\r\n"},
    {OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {OK "Transfer-Encoding: gzip, chunked\r\n\r\n"},
    {OK "Transfer-Encoding: chunked, chunked\r\n\r\n"},
    {OK "Transfer-Encoding: identity\r\n\r\n"},
    {OK "Transfer-Encoding: xchunked\r\n\r\n"},
    {OK "Transfer-Encoding:\r\n\r\n"},
};

static void check_refused(void **state)
{
    const struct refused_case *row = *state;
    char space[512];
    struct buffer fields = {.data = space, .capacity = sizeof space};
    struct parsed_response response;
    size_t taken;

    response_parser_start(&response);
    assert_int_equal(
        response_parser_read(&response, METHOD_GET, text_of(row->name), &fields, &taken),
        RESPONSE_PARSER_REFUSED);
    assert_non_null(response.problem);
}

/* A head that does not end is refused at its limit. */
static void check_limits(void **state)
{
    const size_t size = RESPONSE_HEAD_LIMIT + 100;
    char *head = malloc(size), *space = malloc(size);
    struct buffer fields = {.data = space, .capacity = size};
    struct parsed_response response;
    size_t taken, length;

    (void)state;
    memset(head, 'x', size);
    memcpy(head, OK "A: ", strlen(OK) + 3);
    response_parser_start(&response);
    assert_int_equal(response_parser_read(&response, METHOD_GET,
                                          (struct text){head, RESPONSE_HEAD_LIMIT - 1}, &fields,
                                          &taken),
                     RESPONSE_PARSER_PARTIAL);
    assert_int_equal(response_parser_read(&response, METHOD_GET,
                                          (struct text){head, RESPONSE_HEAD_LIMIT}, &fields,
                                          &taken),
                     RESPONSE_PARSER_REFUSED);

    length = strlen(OK);
    for (int i = 0; i <= RESPONSE_FIELD_LIMIT; i++, length += 6)
        memcpy(head + length, "A: b\r\n", 6);
    memcpy(head + length, "\r\n", 2);
    response_parser_start(&response);
    assert_int_equal(response_parser_read(&response, METHOD_GET, (struct text){head, length + 2},
                                          &fields, &taken),
                     RESPONSE_PARSER_REFUSED);
    response_parser_start(&response);
    fields.capacity = 100;
    assert_int_equal(response_parser_read(&response, METHOD_GET, (struct text){head, length + 2},
                                          &fields, &taken),
                     RESPONSE_PARSER_REFUSED);
    free(head);
    free(space);
}

int main(void)
{
    UNIT_TABLE(heads, check_head);
    UNIT_TABLE(refused, check_refused);
    unit_add("a head that does not end is refused at its limit", check_limits, NULL);
    return unit_run("response_parser");
}
