/* Tests of conditional.c: the result of the If-* fields of a request. */
#include "common/http/conditional.h"

#include "tests/unit.h"

#include <string.h>

#define SAME   "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER  "Sun, 06 Nov 1994 08:49:38 GMT"
#define TIME   784111777

static const struct validators validators = {.etag = TEXT_IS("\"tag\""), .modified = TIME};

struct verdict_case {
    const char *name; /* the fields */
    enum verdict verdict;
};

static const struct verdict_case cases[] = {
    {"", VERDICT_GO_ON},
    {"If-None-Match: \"tag\"\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: W/\"tag\"\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: *\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: \"a\", \"tag\"\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: \"a\",W/\"b\" ,,\"tag\"\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: \"a,b\", \"tag\"\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: \"a\"\r\nIf-None-Match: \"tag\"\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: \"a\"\r\n", VERDICT_GO_ON},
    {"If-None-Match: tag\r\n", VERDICT_GO_ON},
    {"If-None-Match: \"TAG\"\r\n", VERDICT_GO_ON},
    {"If-None-Match: \"tag\r\n", VERDICT_GO_ON},
    {"If-None-Match: \"tagg\"\r\n", VERDICT_GO_ON},
    {"If-None-Match: \"a, \"tag\"\"\r\n", VERDICT_GO_ON},
    {"If-None-Match: w/\"tag\"\r\n", VERDICT_GO_ON},
    {"If-None-Match: W/W/\"tag\"\r\n", VERDICT_GO_ON},
    {"If-None-Match: W/\r\n", VERDICT_GO_ON},
    {"If-None-Match: W\r\n", VERDICT_GO_ON},
    {"If-None-Match: \"*\"\r\n", VERDICT_GO_ON},
    {"If-None-Match:\r\n", VERDICT_GO_ON},
    {"If-Match: \"tag\"\r\n", VERDICT_GO_ON},
    {"If-Match: *\r\n", VERDICT_GO_ON},
    {"If-Match: \"a\", \"tag\"\r\n", VERDICT_GO_ON},
    {"If-Match: \"a\"\r\n", VERDICT_FAILED},
    {"If-Match: W/\"tag\"\r\n", VERDICT_FAILED},
    {"If-Match: W/\"tag\", \"tag\"\r\n", VERDICT_GO_ON},
    {"If-Match:\r\n", VERDICT_FAILED},
    {"If-Modified-Since: " SAME "\r\n", VERDICT_NOT_MODIFIED},
    {"If-Modified-Since: " AFTER "\r\n", VERDICT_NOT_MODIFIED},
    {"If-Modified-Since: " BEFORE "\r\n", VERDICT_GO_ON},
    {"If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", VERDICT_NOT_MODIFIED},
    {"If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n", VERDICT_NOT_MODIFIED},
    {"If-Modified-Since: nonsense\r\n", VERDICT_GO_ON},
    {"If-Modified-Since: " SAME "\r\nIf-Modified-Since: " SAME "\r\n", VERDICT_GO_ON},
    {"If-Unmodified-Since: " SAME "\r\n", VERDICT_GO_ON},
    {"If-Unmodified-Since: " AFTER "\r\n", VERDICT_GO_ON},
    {"If-Unmodified-Since: " BEFORE "\r\n", VERDICT_FAILED},
    {"If-Unmodified-Since: nonsense\r\n", VERDICT_GO_ON},
    {"If-None-Match: \"a\"\r\nIf-Modified-Since: " SAME "\r\n", VERDICT_GO_ON},
    {"If-None-Match: \"tag\"\r\nIf-Modified-Since: " BEFORE "\r\n", VERDICT_NOT_MODIFIED},
    {"If-Match: \"tag\"\r\nIf-Unmodified-Since: " BEFORE "\r\n", VERDICT_GO_ON},
    {"If-Match: \"a\"\r\nIf-Unmodified-Since: " AFTER "\r\n", VERDICT_FAILED},
    {"If-None-Match: \"tag\"\r\nIf-Match: \"a\"\r\n", VERDICT_FAILED},
    {"If-None-Match: \"tag\"\r\nIf-Match: \"tag\"\r\n", VERDICT_NOT_MODIFIED},
    {"If-None-Match: \"tag\"\r\nIf-Unmodified-Since: " BEFORE "\r\n", VERDICT_FAILED},
    {"If-Modified-Since: " SAME "\r\nIf-Unmodified-Since: " SAME "\r\n", VERDICT_NOT_MODIFIED},
};

static void read_request(struct request *request, const char *method, const char *fields,
                         char space[1024])
{
    size_t taken;

    space[0] = '\0';
    strcat(strcat(space, method), " / HTTP/1.0\r\n");
    strcat(strcat(space, fields), "\r\n");
    request_start(request);
    assert_int_equal(request_read(request, text_of(space), &taken), REQUEST_WHOLE);
}

static void check_verdict(void **state)
{
    const struct verdict_case *row = *state;
    struct request request;
    char space[1024];

    read_request(&request, "GET", row->name, space);
    assert_int_equal(conditional_judge(&request, &validators, TIME + 100), row->verdict);
    read_request(&request, "HEAD", row->name, space);
    assert_int_equal(conditional_judge(&request, &validators, TIME + 100), row->verdict);
}

struct range_case {
    const char *name; /* the fields */
    bool honoured;
};

static const struct range_case range_cases[] = {
    {"Range: bytes=0-1\r\n", true},
    {"If-Range: \"tag\"\r\n", true},
    {"If-Range: \"a\"\r\n", false},
    {"If-Range: W/\"tag\"\r\n", false},
    {"If-Range: *\r\n", false},
    {"If-Range: tag\r\n", false},
    {"If-Range:\r\n", false},
    {"If-Range: \"a\", \"tag\"\r\n", false},
    {"If-Range: \"tag\"\r\nIf-Range: \"tag\"\r\n", false},
    {"If-Range: " SAME "\r\n", true},
    {"If-Range: Sunday, 06-Nov-94 08:49:37 GMT\r\n", true},
    {"If-Range: Sun Nov  6 08:49:37 1994\r\n", true},
    {"If-Range: " AFTER "\r\n", false},
    {"If-Range: " BEFORE "\r\n", false},
    {"If-Range: nonsense\r\n", false},
};

static void check_range(void **state)
{
    const struct range_case *row = *state;
    struct request request;
    char space[1024];

    read_request(&request, "GET", row->name, space);
    assert_int_equal(conditional_range(&request, &validators, TIME + 100), row->honoured);
}

/* A date is a weak validator for a file that was modified in this second. */
static void check_strength(void **state)
{
    struct request request;
    char space[1024];

    (void)state;
    read_request(&request, "GET", "If-Range: " SAME "\r\n", space);
    assert_false(conditional_range(&request, &validators, TIME - 5));
    assert_false(conditional_range(&request, &validators, TIME));
    assert_true(conditional_range(&request, &validators, TIME + 2));
    read_request(&request, "GET", "If-Range: \"tag\"\r\n", space);
    assert_true(conditional_range(&request, &validators, TIME));
}

/* Without an entity tag only "*" matches. */
static void check_no_etag(void **state)
{
    static const struct validators bare = {.etag = {NULL, 0}, .modified = TIME};
    struct request request;
    char space[1024];

    (void)state;
    read_request(&request, "GET", "If-None-Match: \"\"\r\n", space);
    assert_int_equal(conditional_judge(&request, &bare, TIME + 100), VERDICT_GO_ON);
    read_request(&request, "GET", "If-Match: \"\"\r\n", space);
    assert_int_equal(conditional_judge(&request, &bare, TIME + 100), VERDICT_FAILED);
    read_request(&request, "GET", "If-None-Match: *\r\n", space);
    assert_int_equal(conditional_judge(&request, &bare, TIME + 100), VERDICT_NOT_MODIFIED);
    read_request(&request, "GET", "If-Range: W/\r\n", space);
    assert_false(conditional_range(&request, &bare, TIME + 100));
}

int main(void)
{
    UNIT_TABLE(cases, check_verdict);
    UNIT_TABLE(range_cases, check_range);
    unit_add("a date is a strong validator only when it is old enough", check_strength, NULL);
    unit_add("without an entity tag only * matches", check_no_etag, NULL);
    return unit_run("conditional");
}
