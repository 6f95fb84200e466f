/* Tests of body_reader.c: where bodies end, and which are refused, however the bytes are cut. */
#include "common/http/body_reader.h"

#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTIAL 1 /* instead of a status */
#define WHOLE   0
#define BEHIND  "GET / HTTP/1.1\r\n" /* the next request */

struct content_case {
    const char *name; /* the chunks */
    int status;
};

static const struct content_case cases[] = {
    {"0\r\n\r\n", WHOLE},
    {"00000000000000000000\r\n\r\n", WHOLE},
    {"1\r\na\r\n0\r\n\r\n", WHOLE},
    {"a\r\n0123456789\r\n0\r\n\r\n", WHOLE},
    {"A\r\n0123456789\r\n0\r\n\r\n", WHOLE},
    {"00a\r\n0123456789\r\n0\r\n\r\n", WHOLE},
    {"1\r\na\r\n1\r\nb\r\n2\r\ncd\r\n0\r\n\r\n", WHOLE},
    {"5\r\n\r\n0\r\n\r\n0\r\n\r\n", WHOLE},
    {"1;a\r\nx\r\n0;b\r\n\r\n", WHOLE},
    {"1;a=b;c\r\nx\r\n0\r\n\r\n", WHOLE},
    {"1;a=\"b;\\\"c\"\r\nx\r\n0\r\n\r\n", WHOLE},
    {"1\r\nx\r\n0\r\nA: b\r\n\r\n", WHOLE},
    {"1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", WHOLE},

    {"", PARTIAL},
    {"0", PARTIAL},
    {"0\r\n", PARTIAL},
    {"0\r\n\r", PARTIAL},
    {"5\r\nabc", PARTIAL},
    {"0\r\nA: b\r\n", PARTIAL},

    {"\r\n", 400},
    {";a\r\n", 400},
    {"x\r\n", 400},
    {"+1\r\na\r\n", 400},
    {"-1\r\na\r\n", 400},
    {" 1\r\na\r\n", 400},
    {"0x1\r\na\r\n", 400},
    {"1h\r\na\r\n", 400},
    {"1\na\r\n", 400},
    {"1\ra\r\n", 400},
    {"1\r\r\na\r\n", 400},
    {"1\r\nab\r\n", 400},
    {"2\r\na\r\n\r\n", 400},
    {"1\r\na\n", 400},
    {"1\r\na\r\r\n", 400},
    {"1\r\na\r\n\r\n", 400},
    {"1;a\nb\r\nx\r\n", 400},
    {"1;\x01\r\nx\r\n", 400},
    {"1;\x7f\r\nx\r\n", 400},
    {"1;a=\"\r\n\"\r\nx\r\n", 400},
    {"1;a=\"\n\"\r\nx\r\n", 400},
    {"0\r\n\n", 400},
    {"0\n", 400},
    {"0\r\nA: b\n", 400},
    {"0\r\nA: b\rc\r\n", 400},
    {"0\r\nA: \x01\r\n", 400},
    {"0\r\n b\r\n", 400},
    {"0\r\n\rx", 400},

    {"100001\r\n", 413},
    {"ffffffffffffffff\r\n", 413},
    {"10000000000000001\r\n", 413},
    {"fffffffffffffffffffffffffffffffff\r\n", 413},
};

static void start(struct body_reader *body_reader, enum framing framing, uint64_t length)
{
    struct request request;

    request_start(&request);
    request.framing = framing;
    request.content_length = length;
    body_reader_start(body_reader, &request);
}

static int status_of(struct body_reader *body_reader, struct text *bytes)
{
    switch (body_reader_read(body_reader, bytes)) {
    case BODY_READER_WHOLE:
        return WHOLE;
    case BODY_READER_PARTIAL:
        assert_int_equal(bytes->length, 0);
        return PARTIAL;
    case BODY_READER_REFUSED:
        break;
    }
    assert_non_null(body_reader->problem);
    return body_reader->status;
}

/* Reads in steps of all sizes. The request behind a body must be left untouched. */
static void check_case(void **state)
{
    const struct content_case *row = *state;
    char text[256];
    size_t length;

    snprintf(text, sizeof text, "%s%s", row->name, row->status == WHOLE ? BEHIND : "");
    length = strlen(text);
    for (size_t step = 1; step <= length + 1; step++) {
        struct body_reader body_reader;
        int status = PARTIAL;
        size_t at = 0, left = 0;

        start(&body_reader, FRAMING_CHUNKED, 0);
        while (at < length && status == PARTIAL) {
            size_t portion = at + step < length ? step : length - at;
            struct text bytes = {text + at, portion};
            status = status_of(&body_reader, &bytes);
            at += portion;
            left = bytes.length;
        }
        assert_int_equal(status, row->status);
        if (status == WHOLE)
            assert_int_equal(length - at + left, strlen(BEHIND));
    }
}

static void check_length(void **state)
{
    static char body[BODY_READER_LIMIT + 10];
    static const uint64_t lengths[] = {1, 5, 4096, BODY_READER_LIMIT};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct body_reader body_reader;
        struct text first = {body, (size_t)lengths[i] - 1}, rest = {body, 10};

        start(&body_reader, FRAMING_LENGTH, lengths[i]);
        if (first.length > 0)
            assert_int_equal(status_of(&body_reader, &first), PARTIAL);
        assert_int_equal(status_of(&body_reader, &rest), WHOLE);
        assert_int_equal(rest.length, 9);
    }
}

static void check_length_limit(void **state)
{
    static const uint64_t lengths[] = {BODY_READER_LIMIT + 1, UINT64_MAX, (uint64_t)1 << 63};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct body_reader body_reader;
        struct text bytes = TEXT("abc");

        start(&body_reader, FRAMING_LENGTH, lengths[i]);
        assert_int_equal(status_of(&body_reader, &bytes), 413);
    }
}

/* Chunks of 64 KiB: 16 of them are the limit. */
static void check_chunk_limit(void **state)
{
    static char chunk[65536 + 9];

    (void)state;
    memset(chunk, 'x', sizeof chunk);
    memcpy(chunk, "10000\r\n", 7);
    memcpy(chunk + 7 + 65536, "\r\n", 2);
    for (int chunks = 15; chunks <= 17; chunks++) {
        struct body_reader body_reader;
        int status = PARTIAL;

        start(&body_reader, FRAMING_CHUNKED, 0);
        for (int i = 0; i < chunks && status == PARTIAL; i++) {
            struct text bytes = {chunk, sizeof chunk};
            status = status_of(&body_reader, &bytes);
        }
        if (status == PARTIAL) {
            struct text end = TEXT("0\r\n\r\n");
            status = status_of(&body_reader, &end);
        }
        assert_int_equal(status, chunks <= 16 ? WHOLE : 413);
    }
}

/* Extensions and trailers are limited. */
static void check_overhead(void **state)
{
    static const char *const starts[] = {"1;", "1;\"", "0\r\n", "0\r\nA: "};
    static const char *const repeated[] = {"x", "x", "A: b\r\n", "b"};

    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct body_reader body_reader;
        struct text bytes = text_of(starts[i]);
        int status, rounds = 0;

        start(&body_reader, FRAMING_CHUNKED, 0);
        status = status_of(&body_reader, &bytes);
        for (; status == PARTIAL && rounds < 1000000; rounds++) {
            bytes = text_of(repeated[i]);
            status = status_of(&body_reader, &bytes);
        }
        assert_true(status == 413 || status == 431 || status == 400);
        assert_true(rounds > 500);
    }
}

/* The limit does not depend on the data before them. */
static void check_gap(void **state)
{
    static char chunk[65536 + 9];
    struct body_reader body_reader;
    struct text bytes = {chunk, sizeof chunk};
    int status, rounds = 0;

    (void)state;
    memset(chunk, 'x', sizeof chunk);
    memcpy(chunk, "10000\r\n", 7);
    memcpy(chunk + 7 + 65536, "\r\n", 2);
    body_reader_begin(&body_reader, FRAMING_CHUNKED, 0, UINT64_MAX);
    for (int i = 0; i < 100; i++, bytes = (struct text){chunk, sizeof chunk})
        assert_int_equal(status_of(&body_reader, &bytes), PARTIAL);
    bytes = TEXT("0\r\n");
    status = status_of(&body_reader, &bytes);
    for (; status == PARTIAL && rounds < 1000000; rounds++) {
        bytes = TEXT("A: b\r\n");
        status = status_of(&body_reader, &bytes);
    }
    assert_int_equal(status, 431);
    assert_in_range(rounds, 1000, 4000);
}

int main(void)
{
    UNIT_TABLE(cases, check_case);
    unit_add("a body ends after Content-Length bytes", check_length, NULL);
    unit_add("a Content-Length over the limit is refused", check_length_limit, NULL);
    unit_add("chunks over the limit are refused", check_chunk_limit, NULL);
    unit_add("endless extensions and trailers are refused", check_overhead, NULL);
    unit_add("endless trailers after much data are refused", check_gap, NULL);
    return unit_run("content");
}
