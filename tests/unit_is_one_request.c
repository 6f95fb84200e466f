/* Tests of is_one_request.c: which bytes are exactly one request. */
#include "common/http/is_one_request.h"

#include "common/http/request.h"
#include "tests/unit.h"

#include <stdlib.h>
#include <string.h>

/* As long as a UDP datagram may be. */
#define LONGEST 65000

struct whole_case {
    const char *name; /* the bytes */
    bool whole;
};

#define HEAD " HTTP/1.1\r\nHost: x\r\n"

static const struct whole_case wholes[] = {
    {"GET /" HEAD "\r\n", true},
    {"GET / HTTP/1.0\r\n\r\n", true},
    {"HEAD /x?y" HEAD "Range: bytes=0-0\r\n\r\n", true},
    {"GET http://x/" HEAD "\r\n", true},
    {"OPTIONS *" HEAD "\r\n", true},
    {"BREW /" HEAD "\r\n", true},
    {"CONNECT x:1" HEAD "\r\n", true},
    {"\r\nGET /" HEAD "\r\n", true},
    {"GET /" HEAD "Content-Length: 0\r\n\r\n", true},
    {"POST /" HEAD "Content-Length: 3\r\n\r\nabc", true},
    {"POST /" HEAD "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", true},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", true},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", true},

    /* These are refused, but not malformed. */
    {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", true},
    {"GET /" HEAD "Expect: miracles\r\n\r\n", true},

    {"", false},
    {"\r\n", false},
    {"\r\n\r\n", false},
    {"x", false},
    {"GET", false},
    {"GET /\r\n", false},
    {"GET /" HEAD, false},
    {"GET /" HEAD "\r", false},
    {"GET /" HEAD "\r\nx", false},
    {"GET /" HEAD "\r\n\r\n", false},
    {"GET /" HEAD "\r\nGET /" HEAD "\r\n", false},
    {"GET / HTTP/1.1\r\n\r\n", false},
    {"GET /" HEAD "Host: y\r\n\r\n", false},
    {"GET /\n\n", false},
    {"GET / HTTP/1.1\nHost: x\n\n", false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false},
    {"POST /" HEAD "Content-Length: 3\r\n\r\nab", false},
    {"POST /" HEAD "Content-Length: 3\r\n\r\nabcd", false},
    {"POST /" HEAD "Content-Length: 3\r\n\r\n", false},
    {"POST /" HEAD "Content-Length: 99999999\r\n\r\nabc", false},
    {"POST /" HEAD "Content-Length: -1\r\n\r\n", false},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", false},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nx", false},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\n\r\nx\r\n", false},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", false},
};

static void check_whole(void **state)
{
    const struct whole_case *row = *state;
    size_t length = strlen(row->name);
    char *bytes = malloc(length + 1); /* of the exact size, for sanitizers */

    assert_non_null(bytes);
    memcpy(bytes, row->name, length);
    assert_int_equal(is_one_request((struct text){bytes, length}), row->whole);
    free(bytes);
}

/* No prefix of a request is a request. */
static void check_shorter(void **state)
{
    static const char bytes[] =
        "POST /" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n";

    (void)state;
    for (size_t length = 0; length < sizeof bytes - 1; length++) {
        char *copy = malloc(length + 1);
        assert_non_null(copy);
        memcpy(copy, bytes, length);
        assert_false(is_one_request((struct text){copy, length}));
        free(copy);
    }
    assert_true(is_one_request((struct text){bytes, sizeof bytes - 1}));
}

static void check_long(void **state)
{
    static char bytes[LONGEST];
    int head = snprintf(bytes, sizeof bytes, "GET /" HEAD "X: ");

    (void)state;
    memset(bytes + head, 'y', sizeof bytes - (size_t)head);
    assert_true(is_one_request((struct text){bytes, sizeof bytes})); /* 431 */
    assert_false(is_one_request((struct text){bytes, REQUEST_HEAD_LIMIT / 2}));
}

/* Among the longest messages, none that begins like these is a request whose head is too long. */
static void check_long_others(void **state)
{
    static const char *const starts[] = {
        "",
        " ",
        "\r\n",
        "hello there ",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ",
        "HTTP/1.1 403 Too Long For A Datagram\r\n",
        "INVITE sip:x SIP/2.0\r\nX: ",
        "/ HTTP/1.1\r\nX: ",
    };
    static char bytes[LONGEST];

    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        memset(bytes, 'y', sizeof bytes);
        memcpy(bytes, starts[i], strlen(starts[i]));
        assert_false(is_one_request((struct text){bytes, sizeof bytes}));
    }
}

int main(void)
{
    UNIT_TABLE(wholes, check_whole);
    unit_add("a request that is cut anywhere is no request", check_shorter, NULL);
    unit_add("a request that is too long is a request", check_long, NULL);
    unit_add("a message that is too long and does not begin as a request is no request",
             check_long_others, NULL);
    return unit_run("is_one_request");
}
