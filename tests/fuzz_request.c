/* Fuzzes all that reads what a client or an origin sends: heads, bodies, paths, ranges, dates,
 * preconditions, and what a cache and a proxy make of them.
 * Whatever the bytes are, nothing may be read or written out of bounds, and how the bytes are cut
 * must not change what is read.
 */
#include "common/http/body_reader.h"
#include "common/http/conditional.h"
#include "common/http/date.h"
#include "common/http/fields.h"
#include "common/http/is_one_request.h"
#include "common/http/path.h"
#include "common/http/range.h"
#include "common/http/request.h"
#include "common/http/response_parser.h"
#include "common/net/address.h"
#include "common/proxy/freshness.h"
#include "common/proxy/rewrite.h"
#include "common/proxy/stored_fields.h"
#include "common/proxy/vary.h"
#include "tests/fuzz.h"

static void try_path(struct text target)
{
    char *path = malloc(PATH_LIMIT);
    size_t length;

    require(path != NULL, "there is memory");
    if (path_resolve(target, path, PATH_LIMIT, &length) == PATH_GOOD) {
        require(length < PATH_LIMIT && path[length] == '\0', "a path fits and ends");
        require(memchr(path, '\0', length) == NULL, "a path has no NUL within");
        require(path[0] != '/' && path[0] != '.', "a path neither begins at the top nor is hidden");
        require(strstr(path, "/.") == NULL && strstr(path, "//") == NULL,
                "no segment is hidden, empty or climbs");
    }
    free(path);
}

static void try_range(struct text value, uint64_t size)
{
    struct range ranges[RANGE_LIMIT];
    int count = range_read(value, size, ranges);
    uint64_t sum = 0;

    require(count >= -1 && count <= RANGE_LIMIT, "the number of ranges is limited");
    for (int i = 0; i < count; i++) {
        require(ranges[i].first < ranges[i].end && ranges[i].end <= size, "a range is within");
        sum += ranges[i].end - ranges[i].first;
    }
    require(sum <= size, "the ranges are no longer than the whole");
}

static void try_fields(const struct request *request)
{
    static const struct validators validators = {.etag = TEXT_IS("\"a\""), .modified = 784111777};

    conditional_judge(request, &validators, 800000000);
    conditional_range(request, &validators, 800000000);
    for (enum field_name name = 0; name <= FIELD_OTHER; name++) {
        size_t from = 0;
        struct text value;
        while (request_field(request, name, &from, &value)) {
            int64_t seconds;
            try_range(value, 10);
            try_range(value, UINT64_MAX);
            date_read(value, 1700000000, &seconds);
        }
    }
}

/* Forwarded fields have as many lines as there are fields, and no other bytes. */
static void try_lines(struct text lines)
{
    struct text line, name, value;

    while (text_line(&lines, &line)) {
        size_t from = 0;
        require(fields_next((struct text){line.data, line.length + 2}, &from, &name, &value) &&
                    memchr(line.data, '\r', line.length) == NULL,
                "what is passed on is made of fields");
    }
    require(lines.length == 0, "a line ends");
}

static void try_forward(const struct request *request)
{
    size_t room = 2 * (request->fields.length + request->line.length) + 1024;
    struct buffer output = {.data = malloc(room), .capacity = room};
    const struct rewrite rewrite = {.request = request, .authority = TEXT("a"), .via = TEXT("me")};
    struct address_list destination;
    struct text host;
    uint16_t port;

    require(output.data != NULL, "there is memory");
    rewrite_has_looped(request, TEXT("me"));
    if (request->method != METHOD_CONNECT) {
        rewrite_request(&rewrite, &output);
        require(!output.overflow, "a forwarded request is not much longer");
    }
    free(output.data);
    if (address_split(request->host, 80, &host, &port))
        address_find(&destination, TEXT("127.0.0.1 a\n"), host, port);
}

/* Tries what the cache does with the fields of a response. */
static void try_cache(const struct parsed_response *response)
{
    size_t room = 4 * response->fields.length + 16;
    struct buffer kept = {.data = malloc(room), .capacity = room};
    struct buffer merged = {.data = malloc(2 * room), .capacity = 2 * room};
    struct cached_response read;
    struct cache_control asked;

    require(kept.data != NULL && merged.data != NULL, "there is memory");
    freshness_read(&read, response->status, response->fields, 1699999990, 1700000000);
    cache_control_read(response->fields, true, &asked);
    freshness_may_store(&read, response->fields, response->fields);
    require(freshness_lifetime(&read) >= 0 && freshness_lifetime(&read) <= CACHE_CONTROL_FOREVER,
            "a lifetime has its limits");
    require(freshness_age(&read, 1700000005) >= 0 &&
                freshness_age(&read, 1700000005) <= CACHE_CONTROL_FOREVER,
            "an age has its limits");
    freshness_judge(&read, &asked, 1700000005);
    freshness_bridges_error(&read, &asked, 60, 1700000005);
    freshness_read_targeted(&read, response->fields);
    stored_fields_write(response->fields, (struct text){0}, &kept);
    stored_fields_update((struct text){kept.data, kept.length}, response->fields, &merged);
    require(!kept.overflow && !merged.overflow, "fields that are kept do not grow");
    kept.length = merged.length = 0;
    vary_write_list(response->fields, &kept);
    vary_select((struct text){kept.data, kept.length}, response->fields, &merged);
    free(kept.data);
    free(merged.data);
}

/* Reads the head of a response in steps; each step from memory of its own. Returns the length of
 * the head; 0 if the bytes are none. */
static size_t read_response(const char *bytes, size_t size, size_t step)
{
    static char space[RESPONSE_HEAD_LIMIT + 1024];
    struct buffer fields = {.data = space, .capacity = sizeof space};
    enum response_parser_progress progress = RESPONSE_PARSER_PARTIAL;
    struct parsed_response response;
    size_t taken = 0;

    response_parser_start(&response);
    for (size_t known = 0; known < size && progress == RESPONSE_PARSER_PARTIAL;) {
        char *copy;
        known = size - known > step ? known + step : size;
        copy = copy_of(bytes, known);
        progress = response_parser_read(&response, METHOD_GET, (struct text){copy, known}, &fields,
                                        &taken);
        require(progress != RESPONSE_PARSER_WHOLE || (taken > 0 && taken <= known),
                "the head of a response ends within its bytes");
        require(progress != RESPONSE_PARSER_REFUSED || response.problem != NULL,
                "a refusal says why");
        free(copy);
    }
    if (progress != RESPONSE_PARSER_WHOLE)
        return 0;
    try_lines(response.fields);
    try_cache(&response);
    return taken;
}

struct result {
    enum request_progress progress;
    int status;
    size_t taken;
    size_t fields;
};

/* Reads the head in steps; each step from memory of its own. */
static struct result read_head(const char *bytes, size_t size, size_t step)
{
    struct result result = {.progress = REQUEST_PARTIAL};
    struct request request;

    request_start(&request);
    for (size_t known = 0; known < size && result.progress == REQUEST_PARTIAL;) {
        char *copy;
        known = size - known > step ? known + step : size;
        copy = copy_of(bytes, known);
        result.progress = request_read(&request, (struct text){copy, known}, &result.taken);
        if (result.progress == REQUEST_WHOLE) {
            require(result.taken > 0 && result.taken <= known, "a head ends within its bytes");
            result.fields = request.field_count;
            try_path(request.path);
            try_fields(&request);
            try_forward(&request);
        }
        free(copy);
    }
    if (result.progress == REQUEST_REFUSED) {
        result.status = request.status;
        require(request.status >= 400 && request.status < 600 && request.problem != NULL,
                "a refusal says why");
    }
    if (result.progress != REQUEST_WHOLE)
        result.taken = 0;
    return result;
}

struct body_result {
    enum body_reader_progress progress;
    int status;
    size_t taken;
};

static struct body_result read_body(const char *bytes, size_t size, size_t step)
{
    struct body_result result = {.progress = BODY_READER_PARTIAL};
    struct request request;
    struct body_reader body_reader;

    request_start(&request);
    request.framing = FRAMING_CHUNKED;
    body_reader_start(&body_reader, &request);
    while (result.taken < size && result.progress == BODY_READER_PARTIAL) {
        size_t portion = size - result.taken < step ? size - result.taken : step;
        char *copy = copy_of(bytes + result.taken, portion);
        struct text rest = {copy, portion};
        result.progress = body_reader_read(&body_reader, &rest);
        require(rest.length <= portion, "no more is taken than there is");
        require(result.progress != BODY_READER_PARTIAL || rest.length == 0,
                "a body that is not whole takes all");
        result.taken += portion - rest.length;
        free(copy);
    }
    if (result.progress == BODY_READER_REFUSED) {
        result.status = body_reader.status;
        result.taken = 0;
    }
    return result;
}

/* A datagram holds one request and nothing else: a request that is found has no byte after it. */
static void try_datagram(struct text bytes, const struct result *head)
{
    struct body_result body;
    struct request request;
    size_t taken;

    if (!is_one_request(bytes) || head->progress != REQUEST_WHOLE)
        return;
    request_start(&request);
    request_read(&request, bytes, &taken);
    if (request.framing == FRAMING_NONE)
        require(taken == bytes.length, "a request in a datagram ends with it");
    if (request.framing == FRAMING_LENGTH)
        require(taken + request.content_length == bytes.length, "its body ends with it");
    if (request.framing != FRAMING_CHUNKED)
        return;
    body = read_body(bytes.data + taken, bytes.length - taken, bytes.length);
    require(body.progress == BODY_READER_WHOLE && taken + body.taken == bytes.length,
            "its chunks end with it");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct text all = {bytes, size};
    struct result whole = read_head(bytes, size, size), cut = read_head(bytes, size, 1 + size / 3);
    struct body_result body = read_body(bytes, size, size), parts = read_body(bytes, size, 3);
    int64_t seconds;

    require(read_response(bytes, size, size) == read_response(bytes, size, 1 + size / 3),
            "the head of a response is the same however it is cut");
    require(whole.progress == cut.progress && whole.taken == cut.taken &&
                whole.fields == cut.fields,
            "a head is the same however it is cut");
    require(body.progress == parts.progress && body.status == parts.status &&
                body.taken == parts.taken,
            "a body is the same however it is cut");
    try_datagram(all, &whole);
    try_path(all);
    try_range(all, 1000);
    date_read(all, 1700000000, &seconds);
    return 0;
}

const char *const fuzz_seeds[] = {
    "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HEAD http://a:80/b/../c%20d?e=f HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n0\r\nA: "
    "b\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\nRange: bytes=0-1,5-,-3\r\nIf-Range: \"a\"\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [::1]:80\r\nIf-None-Match: W/\"a\", \"b\\\"c\"\r\nIf-Match: *\r\n"
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "If-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nIf-Range: Sun Nov  6 08:49:37 1994\r\n\r\n",
    "\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\nUser-Agent: \x80\xff\t x\r\nReferer: /\r\n\r\n",
    "5;a=\"b\\\"c\"\r\nhello\r\n00a\r\n0123456789\r\n0;x\r\nTrailer: y\r\n\r\nGET",
    "bytes=0-0,5-5,-1,99-,3-4",
    "/a/./b/../c//%2e%2E/d%2fe/.f/%00%zz",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: max-age=60, "
    "private=\"a, b\", s-maxage=\"9\"\r\nVary: Accept, *\r\nETag: W/\"a\"\r\nAge: 5\r\n"
    "Connection: x, y\r\nContent-Length: 3\r\n\r\nabc",
    "HTTP/1.0 404\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nExpires: 0\nX : y\n\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store, "
    "stale-if-error=5, x=\"\\\"\", no-cache=\"c\"\r\n\r\n",
};
const size_t fuzz_seed_count = COUNT_OF(fuzz_seeds);
const char fuzz_subject[] = "requests, responses, bodies, paths, ranges and dates";
const long fuzz_rounds = 50000;
