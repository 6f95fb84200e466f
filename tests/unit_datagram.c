/* Datagrams: which ones are a request, and how long a reply may be. */
#include "common/net/datagram.h"

#include "common/http/request.h"
#include "tests/unit.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

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

    /* Refused, and not malformed. */
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
    char *bytes = malloc(length + 1); /* a copy, so that a sanitizer sees what is read behind it */

    assert_non_null(bytes);
    memcpy(bytes, row->name, length);
    assert_int_equal(datagram_is_whole((struct text){bytes, length}), row->whole);
    free(bytes);
}

/* Whatever is missing at the end. */
static void check_shorter(void **state)
{
    static const char bytes[] =
        "POST /" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n";

    (void)state;
    for (size_t length = 0; length < sizeof bytes - 1; length++) {
        char *copy = malloc(length + 1);
        assert_non_null(copy);
        memcpy(copy, bytes, length);
        assert_false(datagram_is_whole((struct text){copy, length}));
        free(copy);
    }
    assert_true(datagram_is_whole((struct text){bytes, sizeof bytes - 1}));
}

static void check_long(void **state)
{
    static char bytes[DATAGRAM_REQUEST_LIMIT];
    int head = snprintf(bytes, sizeof bytes, "GET /" HEAD "X: ");

    (void)state;
    memset(bytes + head, 'y', sizeof bytes - (size_t)head);
    assert_true(datagram_is_whole((struct text){bytes, sizeof bytes})); /* 431 */
    assert_false(datagram_is_whole((struct text){bytes, REQUEST_HEAD_LIMIT / 2}));
}

/* The longest datagrams that begin so: none of them is a request whose head is too long. */
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
    static char bytes[DATAGRAM_REQUEST_LIMIT];

    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        memset(bytes, 'y', sizeof bytes);
        memcpy(bytes, starts[i], strlen(starts[i]));
        assert_false(datagram_is_whole((struct text){bytes, sizeof bytes}));
    }
}

struct room_case {
    const char *name; /* the address */
    size_t request, room;
};

static const struct room_case rooms[] = {
    {"127.0.0.1", 18, DATAGRAM_REPLY_LIMIT},
    {"127.255.255.254", 18, DATAGRAM_REPLY_LIMIT},
    {"::1", 18, DATAGRAM_REPLY_LIMIT},
    {"128.0.0.1", 18, 54},
    {"126.255.255.255", 100, 300},
    {"192.0.2.1", 0, 0},
    {"192.0.2.1", 21835, 65505},
    {"192.0.2.1", 21836, DATAGRAM_REPLY_LIMIT},
    {"192.0.2.1", DATAGRAM_REQUEST_LIMIT, DATAGRAM_REPLY_LIMIT},
    {"::2", 18, 54},
    {"fe80::1", 18, 54},
    {"2001:db8::1", 18, 54},
};

static void check_room(void **state)
{
    const struct room_case *row = *state;
    union address address = {0};

    if (inet_pton(AF_INET, row->name, &address.v4.sin_addr) == 1)
        address.v4.sin_family = AF_INET;
    else if (inet_pton(AF_INET6, row->name, &address.v6.sin6_addr) == 1)
        address.v6.sin6_family = AF_INET6;
    assert_int_equal(datagram_room(&address, row->request), row->room);
}

int main(void)
{
    UNIT_TABLE(wholes, check_whole);
    UNIT_TABLE(rooms, check_room);
    unit_add("a request without its end is none, wherever it is cut", check_shorter, NULL);
    unit_add("a request that is too long is to be told so", check_long, NULL);
    unit_add("what is too long, and begins as no request does, is none", check_long_others, NULL);
    return unit_run("datagram");
}
