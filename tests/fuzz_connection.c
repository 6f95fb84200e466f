/* Fuzzes a whole connection over a scripted transport: however the bytes of the client are cut, it
 * gets the same responses. */
#include "tests/fuzz.h"
#include "tests/fuzz_service.h"
#include "tests/script.h"

/* Serves the bytes in pieces. Returns what the client received. */
static struct text serve(const char *bytes, size_t size, size_t piece, enum protocol protocol)
{
    const struct service_context context = fuzz_context(&scripted, protocol);
    size_t room = 16384 + 256 * size;
    struct connection connection;
    struct exchange exchange;

    script_start(bytes, size, piece);
    script.received = (struct buffer){.data = malloc(room), .capacity = room};
    require(script.received.data != NULL, "there is memory");
    connection_open(&connection, &context, -1, fuzz_now);
    connection_lend(&connection, &exchange);
    for (size_t steps = 0; connection_step(&connection) != NEED_NOTHING; steps++)
        require(steps < 16 + 2 * size, "a connection goes on with each byte, and ends");
    connection_close(&connection);
    require(!script.received.overflow, "responses are bounded");
    return (struct text){script.received.data, script.received.length};
}

/* A client with Expect: 100-continue gets 100 only if it waits, so its responses depend on the
 * cuts. */
static bool is_cut_alike(const char *bytes, size_t size)
{
    for (size_t i = 0; i + 6 <= size; i++)
        if (strncasecmp(bytes + i, "expect", 6) == 0)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 2, 3, 17, 1000};
    const char *bytes = (const char *)data;
    enum protocol protocol;
    char *copy;
    struct text whole;

    if (size > 20000)
        return 0;
    protocol = size % 3;
    copy = copy_of(bytes, size);
    whole = serve(copy, size, 100000, protocol);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        struct text cut = serve(copy, size, pieces[i], protocol);
        require(!is_cut_alike(bytes, size) || text_equal(whole, cut),
                "the responses are the same however the requests are cut");
        free((char *)cut.data);
    }
    free((char *)whole.data);
    free(copy);
    return 0;
}

const char *const fuzz_seeds[] = {
    "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /3 HTTP/1.1\r\n"
    "Host: a\r\nConnection: close\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n0\r\n"
    "A: b\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\nRange: bytes=0-1,5-,-3\r\n\r\nGET / "
    "HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"a\"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n"
    "Range: bytes=1-2\r\nIf-Range: \"a\"\r\n\r\n",
    "\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
    "GET http://a/b HTTP/1.1\r\nHost: c\r\n\r\n",
    "GET /\r\n",
};
const size_t fuzz_seed_count = COUNT_OF(fuzz_seeds);
const char fuzz_subject[] = "the bytes of a connection, each cut in six ways";
const long fuzz_rounds = 7500;
