/* Tests of rewrite.c: the heads that the proxy forwards. */
#include "common/proxy/rewrite.h"

#include "tests/unit.h"

#include <string.h>

#define HEAD " HTTP/1.1\r\nHost: given\r\n"
#define TAIL "Via: 1.1 me\r\nConnection: close\r\n\r\n"

struct request_case {
    const char *name; /* the request */
    const char *forwarded;
    bool validates;
};

static const struct request_case requests[] = {
    {"GET http://a/b?c" HEAD "\r\n", "GET /b?c HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"GET http://a" HEAD "\r\n", "GET / HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"GET /b" HEAD "A: b\r\n\r\n", "GET /b HTTP/1.1\r\nHost: o:1\r\nA: b\r\n" TAIL, false},
    {"FOO /b" HEAD "\r\n", "FOO /b HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"OPTIONS *" HEAD "\r\n", "OPTIONS * HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"OPTIONS http://a" HEAD "\r\n", "OPTIONS * HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"OPTIONS http://a/" HEAD "\r\n", "OPTIONS / HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"OPTIONS /" HEAD "Max-Forwards: 7\r\n\r\n",
     "OPTIONS / HTTP/1.1\r\nHost: o:1\r\nMax-Forwards: 6\r\n" TAIL, false},
    {"OPTIONS https://a" HEAD "\r\n", "OPTIONS * HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"OPTIONS http://a?b" HEAD "\r\n", "OPTIONS /?b HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"OPTIONS /" HEAD "Max-Forwards: 99999999999999999999\r\n\r\n",
     "OPTIONS / HTTP/1.1\r\nHost: o:1\r\nMax-Forwards: 18446744073709551614\r\n" TAIL, false},
    {"OPTIONS /" HEAD "Max-Forwards: x\r\n\r\n", "OPTIONS / HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"GET /" HEAD "Max-Forwards: 7\r\n\r\n", "GET / HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"GET /" HEAD "Connection: a, close\r\nA: 1\r\nB: 2\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: o:1\r\nB: 2\r\n" TAIL, false},
    {"GET /" HEAD "TE: x\r\nUpgrade: y\r\nKeep-Alive: z\r\nProxy-Authorization: p\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: o:1\r\n" TAIL, false},
    {"POST /" HEAD "Content-Length: 05\r\n\r\n",
     "POST / HTTP/1.1\r\nHost: o:1\r\nContent-Length: 5\r\n" TAIL, false},
    {"POST /" HEAD "Content-Length: 0\r\n\r\n",
     "POST / HTTP/1.1\r\nHost: o:1\r\nContent-Length: 0\r\n" TAIL, false},
    {"POST /" HEAD "Connection: content-length\r\nContent-Length: 5\r\n\r\n",
     "POST / HTTP/1.1\r\nHost: o:1\r\nContent-Length: 5\r\n" TAIL, false},
    {"POST /" HEAD "Transfer-Encoding: chunked\r\nTrailer: x\r\nExpect: 100-continue\r\n\r\n",
     "POST / HTTP/1.1\r\nHost: o:1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n" TAIL,
     false},
    {"GET /" HEAD "If-None-Match: \"a\"\r\nRange: bytes=0-1\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: o:1\r\nIf-None-Match: \"a\"\r\nRange: bytes=0-1\r\n" TAIL, false},
    {"GET /" HEAD "If-None-Match: \"a\"\r\nIf-Range: \"b\"\r\nRange: bytes=0-1\r\nA: b\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: o:1\r\nA: b\r\nIf-None-Match: \"e\"\r\nIf-Modified-Since: m\r\n" TAIL,
     true},
};

static void read_request(struct request *request, const char *text)
{
    size_t taken;

    request_start(request);
    assert_int_equal(request_read(request, text_of(text), &taken), REQUEST_WHOLE);
}

static void check_request(void **state)
{
    const struct request_case *row = *state;
    struct request request;
    char space[1024];
    struct buffer output = {.data = space, .capacity = sizeof space};
    struct rewrite rewrite = {.request = &request,
                              .authority = TEXT("o:1"),
                              .via = TEXT("me"),
                              .validates = row->validates};

    if (row->validates) {
        rewrite.etag = TEXT("\"e\"");
        rewrite.modified = TEXT("m");
    }
    read_request(&request, row->name);
    rewrite_request(&rewrite, &output);
    buffer_character(&output, '\0');
    assert_string_equal(space, row->forwarded);
}

struct event_loop_case {
    const char *name; /* the fields */
    bool looped;
};

static const struct event_loop_case loops[] = {
    {"", false},
    {"Via: 1.1 me\r\n", true},
    {"Via: 1.1 ME\r\n", true},
    {"Via: HTTP/1.1 me (comment)\r\n", true},
    {"Via: 1.1 a, 1.0 me\r\n", true},
    {"Via: 1.1 a\r\nVia: 1.0 me, 1.1 b\r\n", true},
    {"Via: 1.1 a (me)\r\n", false},
    {"Via: 1.1 mee\r\n", false},
    {"Via: me\r\n", false},
    {"X-Via: 1.1 me\r\n", false},
};

static void check_loop(void **state)
{
    const struct event_loop_case *row = *state;
    struct request request;
    char space[256] = "GET / HTTP/1.0\r\n";

    read_request(&request, strcat(strcat(space, row->name), "\r\n"));
    assert_int_equal(rewrite_has_looped(&request, TEXT("me")), row->looped);
}

struct field_case {
    const char *name;
    const char *forwarded;
};

static const struct field_case fields[] = {
    {"A: 1\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n"},
    {"A: 1\r\nConnection: b\r\nB: 2\r\n", "A: 1\r\n"},
    {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\nA: 1\r\n", "A: 1\r\n"},
    {"Set-Cookie: a\r\nSet-Cookie: b\r\n", "Set-Cookie: a\r\nSet-Cookie: b\r\n"},
};

static void check_fields(void **state)
{
    const struct field_case *row = *state;
    char space[256];
    struct buffer output = {.data = space, .capacity = sizeof space};

    rewrite_fields(text_of(row->name), (struct text){0}, &output);
    buffer_character(&output, '\0');
    assert_string_equal(space, row->forwarded);
}

int main(void)
{
    UNIT_TABLE(requests, check_request);
    UNIT_TABLE(loops, check_loop);
    UNIT_TABLE(fields, check_fields);
    return unit_run("forward");
}
