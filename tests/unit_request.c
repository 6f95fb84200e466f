/* Tests of request.c: how heads are parsed, and which status refuses them. */
#include "common/http/request.h"

#include "tests/unit.h"

#include <stdlib.h>
#include <string.h>

#define HOST    "Host: x\r\n"
#define PARTIAL 1 /* instead of a status */
#define WHOLE   0

struct request_case {
    const char *name; /* the head */
    int status;
};

static const struct request_case cases[] = {
    {"GET / HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"GET / HTTP/1.0\r\n\r\n", WHOLE},
    {"GET / HTTP/1.9\r\n" HOST "\r\n", WHOLE},
    {"\r\nGET / HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"GET http://x/ HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"GET http://x:443/?q HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"GET http://[::1]:80/ HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"GET https://x/ HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"GET HTTPS://x:443/?q HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"CONNECT x:80 HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"BREW / HTTP/1.1\r\n" HOST "\r\n", WHOLE}, /* the service says 501 */
    {"GET / HTTP/1.1\r\nhost:x\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\nHOST: \t x \t \r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8]\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\nHost: [::ffff:192.0.2.1]\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\nHost: [::]:80\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\nHost: [v1.a:b]:80\r\n\r\n", WHOLE},
    {"GET http://[V1f.x]/ HTTP/1.1\r\n" HOST "\r\n", WHOLE},
    {"GET / HTTP/1.1\r\n" HOST "A:\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\n" HOST "A: \x80\xff\t\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: , chunked ,\r\n\r\n", WHOLE},
    {"GET / HTTP/1.1\r\n" HOST "Expect: 100-CONTINUE\r\n\r\n", WHOLE},

    {"", PARTIAL},
    {"\r\n", PARTIAL},
    {"\r\n\r", PARTIAL},
    {"G", PARTIAL},
    {"GET / HTTP/1.1", PARTIAL},
    {"GET / HTTP/1.1\r", PARTIAL},
    {"GET / HTTP/1.1\r\n", PARTIAL},
    {"GET / HTTP/1.1\r\n" HOST, PARTIAL},
    {"GET / HTTP/1.1\r\n" HOST "\r", PARTIAL},

    {"GET / HTTP/1.1\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: x\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "\n", 400},
    {"GET / HTTP/1.1\r\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: x\r\r\n\r\n", 400},
    {"GET /\rHTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n", 400},
    {"GET / HTTP/1.1\rHost: x\r\n\r\n", 400},
    {"\nGET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n", 400},

    {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A\t: b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST " b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "\tb\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n A: b\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A B: c\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A\"B: c\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A\x80: c\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A: \x7f\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "A: \x0b\r\n\r\n", 400},

    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400},
    {"GET / HTTP/1.0\r\n" HOST HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: ]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [1:2]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [:::]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [12345::]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [::256.1.1.1]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [127.0.0.1]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [::1%25eth0]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: []\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [v.x]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [v1.]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [v1x]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [vg.x]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:1]\r\n\r\n", 400},

    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1,1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400},
    {"GET / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n",
     400},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: ,\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 501},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunkedx\r\n\r\n", 501},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", 501},
    {"GET / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n", 417},
    {"GET / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nExpect: x\r\n\r\n", 417},

    {"GET /\r\n\r\n", 400},
    {"GET\r\n\r\n", 400},
    {"GET HTTP/1.1\r\n" HOST "\r\n", 400},
    {" GET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /  HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400},
    {"GET / x HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET\t/\tHTTP/1.1\r\n" HOST "\r\n", 400},
    {"G(T / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"G\x80T / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\" HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /<> HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\\ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /# HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\x80 HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\x7f HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET x HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET ?x HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET * HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET http:// HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET https:// HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET https:///x HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET httpss://x/ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET ftp://x/ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET http:///x HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET http://a@b/ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET http://a:b/ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"CONNECT /x HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / http/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.10\r\n" HOST "\r\n", 400},
    {"GET / HTTP/11\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.x\r\n" HOST "\r\n", 400},
    {"GET / HTTP/ 1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/2.0\r\n" HOST "\r\n", 505},
    {"GET / HTTP/0.9\r\n" HOST "\r\n", 505},
};

static int status_of(struct request *request, const char *bytes, size_t length, size_t *taken)
{
    switch (request_read(request, (struct text){bytes, length}, taken)) {
    case REQUEST_WHOLE:
        return WHOLE;
    case REQUEST_PARTIAL:
        return PARTIAL;
    case REQUEST_REFUSED:
        break;
    }
    assert_non_null(request->problem);
    return request->status;
}

/* Parses the whole head at once, from memory of the exact size. */
static void check_whole(void **state)
{
    const struct request_case *row = *state;
    size_t length = strlen(row->name), taken = 0;
    char *bytes = malloc(length + 1);
    struct request request;

    assert_non_null(bytes);
    memcpy(bytes, row->name, length);
    request_start(&request);
    assert_int_equal(status_of(&request, bytes, length, &taken), row->status);
    if (row->status == WHOLE)
        assert_int_equal(taken, length);
    free(bytes);
}

/* Parses byte by byte, from moving memory, with the next request behind: the result is the same,
 * and no head is whole too early. */
static void check_bytes(void **state)
{
    const struct request_case *row = *state;
    size_t length = strlen(row->name), taken = 0;
    struct request request;
    int status = PARTIAL;

    request_start(&request);
    for (size_t known = 1; known <= length && status == PARTIAL; known++) {
        char *bytes = malloc(known);
        assert_non_null(bytes);
        memcpy(bytes, row->name, known);
        status = status_of(&request, bytes, known, &taken);
        if (status == WHOLE)
            assert_int_equal(known, length);
        free(bytes);
    }
    assert_int_equal(status, row->status);
}

static const char *value_of(const struct request *request, enum field_name name, char *space)
{
    struct text value = {0};

    assert_true(request_single(request, name, &value));
    memcpy(space, value.data, value.length);
    space[value.length] = '\0';
    return space;
}

static void check_parts(void **state)
{
    static const char head[] = "POST http://a.b:80/x/y?q=1&r HTTP/1.1\r\nhost: c\r\n"
                               "Content-Length: 42\r\nUser-Agent:  two words\t\r\nX: 1\r\n"
                               "range: bytes=0-1\r\nConnection: foo\r\nConnection: CLOSE\r\n"
                               "expect: 100-continue\r\n\r\nGET / HTTP/1.1\r\n";
    struct request request;
    size_t taken = 0, from = 0;
    struct text value;
    char space[100];

    (void)state;
    request_start(&request);
    assert_int_equal(request_read(&request, TEXT(head), &taken), REQUEST_WHOLE);
    assert_int_equal(taken, strlen(head) - strlen("GET / HTTP/1.1\r\n"));
    assert_int_equal(request.method, METHOD_POST);
    assert_int_equal(request.minor, 1);
    assert_true(text_equal(request.path, TEXT("/x/y")));
    assert_true(text_equal(request.query, TEXT("?q=1&r")));
    assert_true(text_equal(request.host, TEXT("a.b:80")));
    assert_true(text_equal(request.line, TEXT("POST http://a.b:80/x/y?q=1&r HTTP/1.1")));
    assert_int_equal(request.framing, FRAMING_LENGTH);
    assert_int_equal(request.content_length, 42);
    assert_false(request.keep_alive);
    assert_true(request.expects_continue);
    assert_string_equal(value_of(&request, FIELD_USER_AGENT, space), "two words");
    assert_string_equal(value_of(&request, FIELD_RANGE, space), "bytes=0-1");
    assert_false(request_single(&request, FIELD_REFERER, &value));
    assert_false(request_single(&request, FIELD_CONNECTION, &value));
    assert_true(request_field(&request, FIELD_CONNECTION, &from, &value));
    assert_true(text_equal(value, TEXT("foo")));
    assert_true(request_field(&request, FIELD_CONNECTION, &from, &value));
    assert_true(text_equal(value, TEXT("CLOSE")));
    assert_false(request_field(&request, FIELD_CONNECTION, &from, &value));
}

struct scheme_case {
    const char *name;
    enum scheme scheme;
};

static const struct scheme_case scheme_cases[] = {
    {"GET / HTTP/1.1\r\n" HOST "\r\n", SCHEME_UNSAID},
    {"GET http://x/ HTTP/1.1\r\n" HOST "\r\n", SCHEME_HTTP},
    {"GET hTTp://x/ HTTP/1.1\r\n" HOST "\r\n", SCHEME_HTTP},
    {"GET https://x/ HTTP/1.1\r\n" HOST "\r\n", SCHEME_HTTPS},
    {"GET /http://x/ HTTP/1.1\r\n" HOST "\r\n", SCHEME_UNSAID},
};

static void test_scheme(void **state)
{
    const struct scheme_case *row = *state;
    struct request request;
    size_t taken;

    request_start(&request);
    assert_int_equal(request_read(&request, text_of(row->name), &taken), REQUEST_WHOLE);
    assert_int_equal(request.scheme, row->scheme);
}

struct keep_case {
    const char *name;
    bool keep_alive;
};

static const struct keep_case keep_cases[] = {
    {"GET / HTTP/1.1\r\n" HOST "\r\n", true},
    {"GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false},
    {"GET / HTTP/1.1\r\n" HOST "Connection: a, Close ,b\r\n\r\n", false},
    {"GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", true},
    {"GET / HTTP/1.1\r\n" HOST "Connection: keep-alive, close\r\n\r\n", false},
    {"GET / HTTP/1.0\r\n\r\n", false},
    {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
};

static void check_keep_alive(void **state)
{
    const struct keep_case *row = *state;
    struct request request;
    size_t taken;

    request_start(&request);
    assert_int_equal(request_read(&request, text_of(row->name), &taken), REQUEST_WHOLE);
    assert_int_equal(request.keep_alive, row->keep_alive);
}

static void check_methods(void **state)
{
    static const struct {
        const char *name;
        enum method method;
    } methods[] = {
        {"GET", METHOD_GET},
        {"HEAD", METHOD_HEAD},
        {"OPTIONS", METHOD_OPTIONS},
        {"POST", METHOD_POST},
        {"PUT", METHOD_PUT},
        {"DELETE", METHOD_DELETE},
        {"TRACE", METHOD_TRACE},
        {"PATCH", METHOD_PATCH},
        {"get", METHOD_UNKNOWN},
        {"GETS", METHOD_UNKNOWN},
        {"GE", METHOD_UNKNOWN},
        {"G", METHOD_UNKNOWN},
        {"!#$%&'*+-.^_`|~0aZ", METHOD_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        char head[64] = "";
        struct request request;
        size_t taken;

        strcat(strcat(head, methods[i].name), " / HTTP/1.0\r\n\r\n");
        request_start(&request);
        assert_int_equal(request_read(&request, text_of(head), &taken), REQUEST_WHOLE);
        assert_int_equal(request.method, methods[i].method);
    }
}

/* Tries all 256 bytes in each place that does not allow all of them. */
static void check_every_byte(void **state)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    static const char uri[] = "-._~!$&'()*+,;=:@/?[]%", unescaped[] = "\\^`{|}";

    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        bool alphanumeric = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                            (byte >= '0' && byte <= '9');
        bool token = alphanumeric || (byte != 0 && strchr(marks, byte) != NULL);
        bool target = alphanumeric || (byte != 0 && strchr(uri, byte) != NULL);
        bool query = target || (byte != 0 && strchr(unescaped, byte) != NULL);
        bool value = byte == '\t' || (byte >= ' ' && byte != 0x7f);
        char name[] = "GET / HTTP/1.0\r\nA?B: c\r\n\r\n", path[] = "GET /a?b HTTP/1.0\r\n\r\n",
             asked[] = "GET /?a?b HTTP/1.0\r\n\r\n", text[] = "GET / HTTP/1.0\r\nA: b?c\r\n\r\n",
             method[] = "G?T / HTTP/1.0\r\n\r\n";
        struct request request;
        size_t taken;

        name[17] = path[6] = asked[7] = text[20] = method[1] = (char)byte;
        if (byte != ':') { /* a colon ends the name */
            request_start(&request);
            assert_int_equal(status_of(&request, name, sizeof name - 1, &taken),
                             token ? WHOLE : 400);
        }
        request_start(&request);
        assert_int_equal(status_of(&request, path, sizeof path - 1, &taken), target ? WHOLE : 400);
        request_start(&request);
        assert_int_equal(status_of(&request, asked, sizeof asked - 1, &taken), query ? WHOLE : 400);
        request_start(&request);
        assert_int_equal(status_of(&request, text, sizeof text - 1, &taken), value ? WHOLE : 400);
        request_start(&request);
        assert_int_equal(status_of(&request, method, sizeof method - 1, &taken),
                         token ? WHOLE : 400);
    }
}

/* Parses `count` bytes of `filler` between head and tail, in steps. */
static int padded(const char *head, char filler, size_t count, const char *tail)
{
    size_t length = strlen(head) + count + strlen(tail), taken;
    char *bytes = malloc(length);
    struct request request;
    int status = PARTIAL;

    assert_non_null(bytes);
    memcpy(bytes, head, strlen(head));
    memset(bytes + strlen(head), filler, count);
    memcpy(bytes + strlen(head) + count, tail, strlen(tail));
    request_start(&request);
    for (size_t known = 0; known < length && status == PARTIAL;) {
        known = known + 1000 < length ? known + 1000 : length;
        status = status_of(&request, bytes, known, &taken);
    }
    free(bytes);
    return status;
}

static void check_sizes(void **state)
{
    (void)state;
    assert_int_equal(padded("GET /", 'a', 8000, " HTTP/1.0\r\n\r\n"), WHOLE);
    assert_int_equal(padded("GET /", 'a', 8300, " HTTP/1.0\r\n\r\n"), 414);
    assert_int_equal(padded("GET /", 'a', 20000, ""), 414);
    assert_int_equal(padded("", 'a', 20000, ""), 501);
    assert_int_equal(padded("", 'a', 9000, " / HTTP/1.0\r\n\r\n"), 501);
    assert_int_equal(padded("", '/', 20000, ""), 414);
    assert_int_equal(padded("GET / HTTP/1.0\r\nA: ", 'a', 32000, "\r\n\r\n"), WHOLE);
    assert_int_equal(padded("GET / HTTP/1.0\r\nA: ", 'a', 33000, "\r\n\r\n"), 431);
    assert_int_equal(padded("GET / HTTP/1.0\r\n", 'a', 33000, ": a\r\n\r\n"), 431);
    assert_int_equal(padded("GET / HTTP/1.0\r\nA: ", 'a', 100000, ""), 431);
}

static void check_field_count(void **state)
{
    (void)state;
    for (size_t count = REQUEST_FIELD_LIMIT - 1; count < REQUEST_FIELD_LIMIT + 3; count++) {
        char head[2048] = "GET / HTTP/1.0\r\n";
        struct request request;
        size_t taken;

        for (size_t i = 0; i < count; i++)
            strcat(head, "A: b\r\n");
        strcat(head, "\r\n");
        request_start(&request);
        assert_int_equal(status_of(&request, head, strlen(head), &taken),
                         count <= REQUEST_FIELD_LIMIT ? WHOLE : 431);
    }
}

/* A request must not show anything of the one before it. */
static void check_reuse(void **state)
{
    struct request request;
    size_t taken;

    (void)state;
    request_start(&request);
    assert_int_equal(request_read(&request,
                                  TEXT("POST http://a/b?c HTTP/1.1\r\nHost: a\r\nExpect: "
                                       "100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"),
                                  &taken),
                     REQUEST_WHOLE);
    request_start(&request);
    assert_int_equal(request_read(&request, TEXT("GET / HTTP/1.0\r\n\r\n"), &taken), REQUEST_WHOLE);
    assert_int_equal(request.method, METHOD_GET);
    assert_int_equal(request.framing, FRAMING_NONE);
    assert_int_equal(request.field_count, 0);
    assert_int_equal(request.query.length, 0);
    assert_int_equal(request.host.length, 0);
    assert_false(request.expects_continue);
    assert_false(request.keep_alive);
}

int main(void)
{
    UNIT_TABLE(cases, check_whole);
    UNIT_TABLE(cases, check_bytes);
    UNIT_TABLE(scheme_cases, test_scheme);
    UNIT_TABLE(keep_cases, check_keep_alive);
    unit_add("all parts of a head are parsed", check_parts, NULL);
    unit_add("methods are recognized", check_methods, NULL);
    unit_add("a byte is allowed only in the right places", check_every_byte, NULL);
    unit_add("parts of a head that are too long are refused", check_sizes, NULL);
    unit_add("the number of fields is limited", check_field_count, NULL);
    unit_add("a request shows nothing of the one before it", check_reuse, NULL);
    return unit_run("request");
}
