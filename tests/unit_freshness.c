/* Tests the rules of a shared cache: what may be stored, how long it is fresh, and how it may be
 * used. */
#include "common/http/date.h"
#include "common/proxy/freshness.h"
#include "common/proxy/stored_fields.h"
#include "common/proxy/vary.h"

#include "tests/unit.h"

#include <string.h>

#define NOW     INT64_C(784111777)
#define DATE    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define MINUTE  "Sun, 06 Nov 1994 08:50:37 GMT"
#define EARLIER "Sun, 06 Nov 1994 08:48:37 GMT"
#define CC      "Cache-Control: "
#define MODIFY  "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT\r\n" /* 1,000 seconds before */

struct text_case {
    const char *name;
    const char *update;
    const char *result;
};

static struct cached_response read_response(int status, const char *fields)
{
    struct cached_response response;

    freshness_read(&response, status, text_of(fields), NOW, NOW);
    return response;
}

/* ---- storing ---- */

struct store_case {
    const char *name; /* the fields of the response */
    int status;
    const char *request;
    bool stored;
};

static const struct store_case store_cases[] = {
    {"", 200, "", true},
    {"Cache-Control: max-age=60\r\n", 200, "", true},
    {"Cache-Control: max-age=60\r\n", 302, "", true},
    {"Expires: " MINUTE "\r\n", 302, "", true},
    {"Cache-Control: public\r\n", 302, "", true},
    {"Cache-Control: s-maxage=9\r\n", 299, "", true},
    {"X: no freshness\r\n", 302, "", false},
    {"X: no freshness\r\n", 500, "", false},
    {"X: heuristic\r\n", 203, "", true},
    {"X: heuristic\r\n", 204, "", true},
    {"X: heuristic\r\n", 300, "", true},
    {"X: heuristic\r\n", 301, "", true},
    {"X: heuristic\r\n", 308, "", true},
    {"X: heuristic\r\n", 404, "", true},
    {"X: heuristic\r\n", 405, "", true},
    {"X: heuristic\r\n", 410, "", true},
    {"X: heuristic\r\n", 414, "", true},
    {"X: heuristic\r\n", 501, "", true},
    {"Cache-Control: max-age=60\r\n", 206, "", false},
    {"Cache-Control: max-age=60\r\n", 304, "", false},
    {"Cache-Control: max-age=60\r\n", 103, "", false},
    {"Cache-Control: no-store\r\n", 200, "", false},
    {"Cache-Control: NO-STORE\r\n", 200, "", false},
    {"Cache-Control: max-age=60, no-store\r\n", 200, "", false},
    {"Cache-Control: max-age=60\r\nCache-Control: no-store\r\n", 200, "", false},
    {"Cache-Control: x=\"no-store\"\r\n", 200, "", true},
    {"Cache-Control: x=\"a, no-store\"\r\n", 200, "", true},
    {"Cache-Control: x=\"a, no-store\r\n", 200, "", false},
    {"Cache-Control: x=\"a\\\", no-store\", max-age=9\r\n", 200, "", true},
    {"Cache-Control: no-store, must-understand\r\n", 200, "", true},
    {"Cache-Control: no-store, must-understand, max-age=1\r\n", 299, "", false},
    {"Cache-Control: must-understand, max-age=1\r\n", 299, "", false},
    {"Cache-Control: private\r\n", 200, "", false},
    {"Cache-Control: private, max-age=60\r\n", 200, "", false},
    {"Cache-Control: private=\"set-cookie\"\r\n", 200, "", true},
    {"Cache-Control: private=\"\"\r\n", 200, "", false},
    {"Cache-Control: private= \"set-cookie\"\r\n", 200, "", false},
    {"Cache-Control: private=\"set cookie\"\r\n", 200, "", false},
    {"Cache-Control: private=(x)\r\n", 200, "", false},
    {"Cache-Control: max-age=60\r\nVary: X-Forwarded-For\r\n", 200, "", false},
    {"Cache-Control: max-age=60\r\nVary: Accept, forwarded\r\n", 200, "", false},
    {"Cache-Control: max-age=60\r\nVary: X-Forwarded-Proto\r\n", 200, "", true},
    {"Cache-Control: no-cache\r\n", 200, "", true},
    {"Vary: *\r\n", 200, "", false},
    {"Vary: Accept, *\r\n", 200, "", false},
    {"Vary: Accept\r\n", 200, "", true},
    {"Set-Cookie: a=b\r\n", 200, "", false},
    {"Set-Cookie: a=b\r\nCache-Control: max-age=1\r\n", 200, "", true},
    {"Cache-Control: max-age=60\r\n", 200, "Cache-Control: no-store\r\n", false},
    {"Cache-Control: max-age=60\r\n", 200, "Cache-Control: no-cache\r\n", true},
    {"Cache-Control: max-age=60\r\n", 200, "Authorization: Basic eA==\r\n", false},
    {"Cache-Control: public\r\n", 200, "Authorization: Basic eA==\r\n", true},
    {"Cache-Control: must-revalidate\r\n", 200, "Authorization: Basic eA==\r\n", true},
    {"Cache-Control: s-maxage=1\r\n", 200, "Authorization: Basic eA==\r\n", true},
    {"Cache-Control: s-maxage=1, private\r\n", 200, "Authorization: Basic eA==\r\n", false},
    {"Cache-Control: proxy-revalidate, max-age=9\r\n", 200, "Authorization: Basic eA==\r\n", false},
    {"Cache-Control: must-understand, max-age=9\r\n", 200, "Authorization: Basic eA==\r\n", false},
    {"Cache-Control: no-cache, max-age=9\r\n", 200, "Authorization: Basic eA==\r\n", false},
    {"Cache-Control: public, no-store\r\n", 200, "Authorization: Basic eA==\r\n", false},
    {"Cache-Control: max-age=9\r\n", 200, "Cache-Control: NO-STORE=x\r\n", false},
    {"Cache-Control: max-age=9\r\n", 200, "Pragma: no-store\r\n", true},
    {"X: heuristic\r\n", 451, "", true},
    {"Cache-Control: private=x\r\n", 200, "", true},
    {"Cache-Control: private=\"x, private\r\n", 200, "", false},
    {"Cache-Control: private, private=\"x\"\r\n", 200, "", false},
    {"Cache-Control: must-understand, private\r\n", 200, "", false},
    {"Cache-Control: unknown=\"1, 2\", a, b=c, max-age=9\r\n", 200, "", true},
    {"Cache-Control: , ,max-age=9, ,no-store,\r\n", 200, "", false},
    {"Cache-Control:\tmax-age=9\t,\tno-store\r\n", 200, "", false},
    {"Cache-Control:\r\n", 302, "", false},
    {"Cache-Control: stale-while-revalidate=9\r\n", 302, "", false},
    {"Vary: accept language\r\nCache-Control: max-age=9\r\n", 200, "", false},
    {"Vary: a, b;c\r\nCache-Control: max-age=9\r\n", 200, "", false},
    {"Vary: *a\r\nCache-Control: max-age=9\r\n", 200, "", false},
    {"Vary:\r\nCache-Control: max-age=9\r\n", 200, "", true},
    {"Vary: , a ,\r\nCache-Control: max-age=9\r\n", 200, "", true},
    {"Cache-Control: max-age=9\r\nConnection: Cache-Control\r\n", 200, "", false},
    {"Cache-Control: max-age=9\r\nVary: a\r\nConnection: close, vary\r\n", 200, "", false},
    {"Cache-Control: max-age=9\r\nAge: 1\r\nConnection: age\r\n", 200, "", false},
    {"Cache-Control: max-age=9\r\nConnection: x-age\r\n", 200, "", true},
};

static void check_store(void **state)
{
    const struct store_case *row = *state;
    struct cached_response response = read_response(row->status, row->name);

    assert_int_equal(freshness_may_store(&response, text_of(row->request), text_of(row->name)),
                     row->stored);
}

/* Responses with these statuses are about one request only. */
static void check_for_one(void **state)
{
    static const int known[] = {100, 103, 206, 304, 407, 408, 411, 412, 413,
                                416, 417, 421, 425, 426, 428, 429, 431, 511};
    const char *fields = "Cache-Control: public, max-age=60\r\n";

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct cached_response response = read_response(known[i], fields);
        assert_false(freshness_may_store(&response, TEXT(""), text_of(fields)));
    }
}

/* ---- freshness ---- */

struct number_case {
    const char *name; /* the fields of the response */
    int64_t seconds;
};

static const struct number_case lifetimes[] = {
    {"", 0},
    {"Cache-Control: max-age=60\r\n", 60},
    {"Cache-Control: Max-Age=60\r\n", 60},
    {"Cache-Control: max-age=\"60\"\r\n", 60},
    {"Cache-Control: max-age=060\r\n", 60},
    {"Cache-Control: max-age=99999999999999999999999\r\n", CACHE_CONTROL_FOREVER},
    {"Cache-Control: max-age=4294967296\r\n", CACHE_CONTROL_FOREVER},
    {"Cache-Control: max-age=-1\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=+1\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=1.5\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=x\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age= 60\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=60, max-age=60\r\n", 60},
    {"Cache-Control: max-age=60, max-age=61\r\n", 0},
    {"Cache-Control: max-age=60\r\nCache-Control: max-age=30\r\n", 0},
    {"Cache-Control: max-age=60, max-age=61, max-age=60\r\n", 0},
    {"Cache-Control: max-age=60, max-age=\"60\"\r\n", 60},
    {"Cache-Control: max-age=60, MAX-AGE=x\r\n", 0},
    {"Cache-Control: s-maxage=60, s-maxage=30, max-age=90\r\n", 0},
    {"Cache-Control: max-age=\"60\r\n", 0},
    {"Cache-Control: max-age=\"\"\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age='60'\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=0x10\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=60;\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=60 public\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=2147483647\r\n", 2147483647},
    {"Cache-Control: max-age=2147483648\r\n", CACHE_CONTROL_FOREVER},
    {"Cache-Control: max-age=18446744073709551616\r\n", CACHE_CONTROL_FOREVER},
    {"Cache-Control: s-maxage=0, max-age=60\r\nExpires: " MINUTE "\r\n" DATE, 0},
    {"Cache-Control: xmax-age=9, max-agex=9\r\n", 0},
    {"Cache-Control: max-age=60, s-maxage=30\r\n", 30},
    {"Cache-Control: s-maxage=90\r\nExpires: " MINUTE "\r\n" DATE, 90},
    {"Cache-Control: s-maxage=x, max-age=60\r\n", 0},
    {"Cache-Control: max-age=5\r\nExpires: " MINUTE "\r\n" DATE, 5},
    {"Cache-Control: x=\"max-age=60\"\r\n", 0},
    {"Expires: " MINUTE "\r\n" DATE, 60},
    {"Expires: " MINUTE "\r\n", 60},
    {"Expires: Sunday, 06-Nov-94 08:50:37 GMT\r\n" DATE, 60},
    {"Expires: Sun Nov  6 08:50:37 1994\r\n" DATE, 60},
    {"expires: sun, 06 nov 1994 08:50:37 gmt\r\n" DATE, 60},
    {"Expires: Sun, 06 Nov 1994 08:50:37 EST\r\n" MODIFY DATE, 0},
    {"Expires: -1\r\n" MODIFY DATE, 0},
    {"Expires: 60\r\n" MODIFY DATE, 0},
    {"Expires: Fri, 31 Dec 9999 23:59:59 GMT\r\n" DATE, CACHE_CONTROL_FOREVER},
    {"Expires: Mon, 01 Jan 0001 00:00:00 GMT\r\n" DATE, 0},
    {"Expires: " MINUTE "\r\nDate: " MINUTE "\r\n", 0},
    {"Expires: " MINUTE "\r\nDate: never\r\n", 60},
    {"Expires: " MINUTE "\r\nCache-Control: stale-if-error=5\r\n" DATE, 60},
    {"Cache-Control: max-age=60\r\nExpires: 0\r\n", 60},
    {"Expires: " MINUTE "\r\nDate: " EARLIER "\r\n", 120},
    {"Expires: " EARLIER "\r\n" DATE, 0},
    {"Expires: 0\r\n" MODIFY DATE, 0},
    {"Expires:\r\n" MODIFY DATE, 0},
    {"Expires: " MINUTE "\r\nExpires: " MINUTE "\r\n" DATE, 0},
    {MODIFY DATE, 100},
    {MODIFY, 100},
    {"Last-Modified: Sun, 06 Nov 1904 08:49:37 GMT\r\n" DATE, FRESHNESS_HEURISTIC_LIMIT},
    {"Last-Modified: " MINUTE "\r\n" DATE, 0},
    {"Last-Modified: yesterday\r\n" DATE, 0},
    {"last-modified: sun, 06 nov 1994 08:32:57 gmt\r\n" DATE, 100},
    {MODIFY MODIFY DATE, 0},
    {MODIFY "Date: Sun, 06 Nov 1994 08:32:57 GMT\r\n", 0},
    {MODIFY "Cache-Control: must-revalidate\r\n" DATE, 100},
};

static void check_lifetime(void **state)
{
    const struct number_case *row = *state;
    struct cached_response response = read_response(200, row->name);

    assert_int_equal(freshness_lifetime(&response), row->seconds);
}

static void check_guess(void **state)
{
    struct cached_response response = read_response(302, MODIFY DATE);

    (void)state;
    assert_int_equal(freshness_lifetime(&response), 0);
    response = read_response(302, "Cache-Control: public\r\n" MODIFY DATE);
    assert_int_equal(freshness_lifetime(&response), 100);
}

static const struct number_case ages[] = {
    {"", 5},
    {DATE, 5},
    {"Date: " EARLIER "\r\n", 65},
    {"Date: " MINUTE "\r\n", 5},
    {"Date: never\r\n", 5},
    {"Age: 30\r\n" DATE, 35},
    {"Age: 30\r\nDate: " EARLIER "\r\n", 65},
    {"Age: 90\r\nDate: " EARLIER "\r\n", 95},
    {"Age: 30, 90\r\n" DATE, 35},
    {"Age: 30\r\nAge: 90\r\n" DATE, 35},
    {"Age: -30\r\n" DATE, 5},
    {"Age: x\r\n" DATE, 5},
    {"Age: \"30\"\r\n" DATE, 5},
    {"Age: 99999999999999999999\r\n" DATE, CACHE_CONTROL_FOREVER},
    {"Age: 2147483647\r\n" DATE, CACHE_CONTROL_FOREVER},
    {"Age: 2147483640\r\n" DATE, 2147483645},
    {"Age: 030\r\n" DATE, 35},
    {"Age: 1e3\r\n" DATE, 5},
    {"Age: 3.5\r\n" DATE, 5},
    {"Age: +3\r\n" DATE, 5},
    {"Age: 30 40\r\n" DATE, 5},
    {"Age: x, 30\r\n" DATE, 5},
    {"Age:\r\n" DATE, 5},
    {"Age: 0\r\nDate: Mon, 01 Jan 0001 00:00:00 GMT\r\n", CACHE_CONTROL_FOREVER},
    {"Age: 7\r\nDate: Fri, 31 Dec 9999 23:59:59 GMT\r\n", 12},
    {DATE DATE, 5},
};

static void check_age(void **state)
{
    const struct number_case *row = *state;
    struct cached_response response = read_response(200, row->name);

    assert_int_equal(freshness_age(&response, NOW + 5), row->seconds);
}

static void check_delay(void **state)
{
    struct cached_response response;

    (void)state;
    freshness_read(&response, 200, TEXT("Age: 10\r\n"), NOW - 7, NOW);
    assert_int_equal(freshness_age(&response, NOW), 17);
    assert_int_equal(freshness_age(&response, NOW + 3), 20);
    assert_int_equal(freshness_age(&response, NOW - 3), 17); /* the clock was set back */
    freshness_read(&response, 200, TEXT("Age: 10\r\n"), NOW + 7, NOW);
    assert_int_equal(freshness_age(&response, NOW), 10);
}

/* The validators of a stored response. */
static const struct text_case tags[] = {
    {"ETag: \"a\"\r\n", "", "\"a\""},
    {"ETag: W/\"a\"\r\n", "", "W/\"a\""},
    {"ETag: \"\"\r\n", "", "\"\""},
    {"ETag: \"a,b\"\r\n", "", "\"a,b\""},
    {"ETag: a\r\n", "", ""},
    {"ETag: *\r\n", "", ""},
    {"ETag: \"\r\n", "", ""},
    {"ETag: \"a\r\n", "", ""},
    {"ETag: \"a\", \"b\"\r\n", "", ""},
    {"ETag: W/\r\n", "", ""},
    {"ETag: w/\"a\"\r\n", "", ""},
    {"ETag: \"a\"\r\nETag: \"b\"\r\n", "", ""},
    {"ETag:\r\n", "", ""},
};

static void check_tag(void **state)
{
    const struct text_case *row = *state;
    struct cached_response response = read_response(200, row->name);

    assert_int_equal(response.etag.length, strlen(row->result));
    assert_true(text_equal(response.etag, text_of(row->result)));
}

static void check_modified(void **state)
{
    struct cached_response response =
        read_response(200, "ETag: \"a\"\r\nLast-Modified: yesterday\r\n");

    (void)state;
    assert_int_equal(response.modified_text.length, 0);
    response = read_response(200, MODIFY MODIFY);
    assert_int_equal(response.modified_text.length, 0);
    response = read_response(200, MODIFY);
    assert_int_equal(response.modified_text.length, DATE_LENGTH);
}

/* ---- use ---- */

struct use_case {
    const char *name; /* of the response, which is 10 seconds old */
    const char *request;
    enum freshness_use use;
};

static const struct use_case uses[] = {
    {CC "max-age=11\r\n", "", FRESHNESS_FRESH},
    {CC "max-age=10\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=9\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=60, no-cache\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=60, no-cache\r\n", CC "max-stale\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60, no-cache=\"x\"\r\n", "", FRESHNESS_FRESH},
    {CC "max-age=60, no-cache=\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "no-cache\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "no-cache=x\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", "Pragma: no-cache\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", "Pragma: no-cache\r\n" CC "max-age=60\r\n", FRESHNESS_FRESH},
    {CC "max-age=60\r\nPragma: no-cache\r\n", "", FRESHNESS_FRESH},
    {CC "max-age=60\r\n", CC "max-age=10\r\n", FRESHNESS_FRESH},
    {CC "max-age=60\r\n", CC "max-age=9\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "max-age=0\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "max-age=x\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "max-age=9, max-stale=9\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=50\r\n", FRESHNESS_FRESH},
    {CC "max-age=60\r\n", CC "min-fresh=51\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=x\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=51, max-stale\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale=5\r\n", FRESHNESS_STALE},
    {CC "max-age=5\r\n", CC "max-stale=4\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale\r\n", FRESHNESS_STALE},
    {CC "max-age=5\r\n", CC "max-stale=x\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale, max-age=10\r\n", FRESHNESS_STALE},
    {CC "max-age=5\r\n", CC "max-stale, max-age=9\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "max-stale\r\n", FRESHNESS_FRESH},
    {CC "max-age=5\r\n", CC "max-stale, max-stale\r\n", FRESHNESS_STALE},
    {CC "max-age=5\r\n", CC "max-stale=9, max-stale\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale, max-stale=9\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale=9, max-stale=9\r\n", FRESHNESS_STALE},
    {CC "max-age=5\r\n", CC "max-stale=9, max-stale=8\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale=\"9\"\r\n", FRESHNESS_STALE},
    {CC "max-age=5\r\n", CC "max-stale=\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale=99999999999999999999\r\n", FRESHNESS_STALE},
    {CC "max-age=5\r\n", CC "max-stale, no-cache\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale, min-fresh=1\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale, max-age=0\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5, no-cache=\"x\"\r\n", CC "max-stale\r\n", FRESHNESS_STALE},
    {CC "max-age=60\r\n", CC "max-age=60, max-age=0\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=5, min-fresh=6\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=99999999999\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "s-maxage=1\r\n", FRESHNESS_FRESH},
    {CC "max-age=60\r\n", CC "must-revalidate, private, no-transform, odd\r\n", FRESHNESS_FRESH},
    {CC "max-age=60\r\n", CC "x=\"no-cache\"\r\n", FRESHNESS_FRESH},
    {CC "max-age=60\r\n", CC "x=\"a, no-cache\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", CC "\r\nPragma: no-cache\r\n", FRESHNESS_FRESH},
    {CC "max-age=60\r\n", "Pragma: a, NO-CACHE\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60\r\n", "Pragma: cache\r\n", FRESHNESS_FRESH},
    {CC "max-age=5, must-revalidate\r\n", CC "max-stale\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5, proxy-revalidate\r\n", CC "max-stale\r\n", FRESHNESS_VALIDATE},
    {CC "s-maxage=5\r\n", CC "max-stale\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=60, must-revalidate\r\n", "", FRESHNESS_FRESH},
    {CC "max-age=5, stale-while-revalidate=6\r\n", "", FRESHNESS_WHILE_REVALIDATING},
    {CC "max-age=5, stale-while-revalidate=5\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=x\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60\r\n", CC "max-age=30\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60\r\n", CC "no-cache\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60, must-revalidate\r\n", "", FRESHNESS_VALIDATE},
    {CC "s-maxage=5, stale-while-revalidate=60\r\n", "", FRESHNESS_VALIDATE},
    {CC "stale-while-revalidate=60\r\n", "", FRESHNESS_WHILE_REVALIDATING},
    {CC "max-age=5, stale-while-revalidate=60, proxy-revalidate\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60, no-cache\r\n", "", FRESHNESS_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60, no-cache=\"x\"\r\n", "",
     FRESHNESS_WHILE_REVALIDATING},
    {CC "max-age=5, stale-while-revalidate=60\r\n", CC "min-fresh=1\r\n", FRESHNESS_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60, stale-while-revalidate=9\r\n", "",
     FRESHNESS_VALIDATE},
    {CC "max-age=5\r\n", CC "stale-while-revalidate=60\r\n", FRESHNESS_VALIDATE},
    {"Expires: 0\r\n", "", FRESHNESS_VALIDATE},
    {"", "", FRESHNESS_VALIDATE},
    {MODIFY, "", FRESHNESS_FRESH},
};

static void check_use(void **state)
{
    const struct use_case *row = *state;
    struct cached_response response = read_response(200, row->name);
    struct cache_control request;

    cache_control_read(text_of(row->request), true, &request);
    assert_int_equal(freshness_judge(&response, &request, NOW + 10), row->use);
}

static const struct use_case bridges[] = {
    {CC "max-age=5\r\n", "", false},
    {CC "max-age=5, stale-if-error=5\r\n", "", true},
    {CC "max-age=5, stale-if-error=4\r\n", "", false},
    {CC "max-age=5\r\n", CC "stale-if-error=5\r\n", true},
    {CC "max-age=5, stale-if-error=60\r\n", CC "no-cache\r\n", false},
    {CC "max-age=5, stale-if-error=60, must-revalidate\r\n", "", false},
    {CC "max-age=5, stale-if-error=60, proxy-revalidate\r\n", "", false},
    {CC "s-maxage=5, stale-if-error=60\r\n", "", false},
    {CC "max-age=5, stale-if-error=60, no-cache\r\n", "", false},
    {CC "max-age=5, stale-if-error=x\r\n", "", false},
    {CC "max-age=5\r\n", CC "stale-if-error=4\r\n", false},
    {CC "max-age=5, stale-if-error=4\r\n", CC "stale-if-error=60\r\n", true},
    {CC "max-age=5, stale-if-error=60\r\n", CC "stale-if-error=0\r\n", true},
    {CC "max-age=5\r\n", CC "stale-if-error\r\n", false},
    {CC "max-age=5, must-revalidate\r\n", CC "stale-if-error=60\r\n", false},
    {CC "max-age=5, stale-if-error=60\r\n", "Pragma: no-cache\r\n", false},
    {CC "max-age=5, stale-if-error=60, stale-if-error=9\r\n", "", false},
    {CC "max-age=5\r\n", "", false},
};

static void check_bridge(void **state)
{
    const struct use_case *row = *state;
    struct cached_response response = read_response(200, row->name);
    struct cache_control request;

    cache_control_read(text_of(row->request), true, &request);
    assert_int_equal(freshness_bridges_error(&response, &request, -1, NOW + 10), (bool)row->use);
}

/* Without stale-if-error, a number of seconds may be permitted to all. */
static const struct use_case permitted[] = {
    {CC "max-age=5\r\n", "", true},
    {CC "max-age=4\r\n", "", false},
    {CC "max-age=4, stale-if-error=6\r\n", "", true},
    {"Expires: " EARLIER "\r\n", "", false},
    {CC "max-age=5\r\n", CC "max-age=0\r\n", true},
    {CC "max-age=5\r\n", CC "no-cache\r\n", false},
    {CC "max-age=5, must-revalidate\r\n", "", false},
    {CC "max-age=5, proxy-revalidate\r\n", "", false},
    {CC "s-maxage=5\r\n", "", false},
    {CC "max-age=5, no-cache\r\n", "", false},
};

static void check_permitted(void **state)
{
    const struct use_case *row = *state;
    struct cached_response response = read_response(200, row->name);
    struct cache_control request;

    cache_control_read(text_of(row->request), true, &request);
    assert_int_equal(freshness_bridges_error(&response, &request, 5, NOW + 10), (bool)row->use);
}

/* ---- targeted fields ---- */

#define CDN "CDN-Cache-Control: "

/* The seconds of the lifetime; -1: the response is not stored, -2: it must be validated. */
static const struct number_case targeted[] = {
    {CDN "max-age=9\r\n", 9},
    {CDN "max-age=9\r\n" CC "max-age=60\r\n", 9},
    {CC "max-age=60\r\n" CDN "max-age=9\r\n", 9},
    {CDN "max-age=9\r\n" CC "no-store\r\n", 9},
    {CDN "max-age=9\r\n" CC "private\r\n", 9},
    {CDN "max-age=9\r\n" CC "s-maxage=60\r\n", 9},
    {CDN "no-store\r\n" CC "max-age=60\r\n", -1},
    {CDN "private\r\n" CC "max-age=60\r\n", -1},
    {CDN "private=\"a\"\r\n" CC "max-age=60\r\n", -1},
    {CDN "no-cache\r\n" CC "max-age=60\r\n", -2},
    {CDN "no-store=?0, max-age=9\r\n", 9},
    {CDN "max-age=9;x, no-store;y=1\r\n", -1},
    {CDN "max-age=9\r\n" CDN "max-age=8\r\n", 8},
    {CDN "max-age=9, max-age=8\r\n", 8},
    {CDN "MAX-AGE=9\r\n" CC "max-age=60\r\n", 60},
    {CDN "max-age=9,\r\n" CC "max-age=60\r\n", 60},
    {CDN "max-age=9\r\n" CDN "&\r\n" CC "max-age=60\r\n", 60},
    {CDN "\r\n" CC "max-age=60\r\n", 60},
    {CDN "max-age=9 no-store\r\n" CC "max-age=60\r\n", 60},
    {CDN "max-age=\"9\"\r\n" CC "max-age=60\r\n", 0},
    {CDN "max-age=9.5\r\n" CC "max-age=60\r\n", 0},
    {CDN "max-age=-9\r\n" CC "max-age=60\r\n", 0},
    {CDN "unknown\r\n" CC "max-age=60\r\n", 0},
    {CDN "max-age=999999999999999\r\n", CACHE_CONTROL_FOREVER},
    {CDN "s-maxage=5, max-age=9\r\n", 5},
    {CDN "max-age=9\r\nExpires: 0\r\n", 9},
    {CDN "public\r\n" DATE "Expires: " MINUTE "\r\n", 0},
    {"Surrogate-Control: max-age=9\r\n" CC "max-age=60\r\n", 60},
    {CDN "max-age=9\r\n" CC "max-age=60\r\nConnection: cdn-cache-control\r\n", -1},
};

static void check_targeted(void **state)
{
    const struct number_case *row = *state;
    struct text fields = text_of(row->name);
    struct cached_response response = read_response(200, row->name);

    freshness_read_targeted(&response, fields);
    assert_int_equal(freshness_may_store(&response, TEXT(""), fields), row->seconds != -1);
    assert_int_equal(response.control.no_cache, row->seconds == -2);
    if (row->seconds >= 0)
        assert_int_equal(freshness_lifetime(&response), row->seconds);
}

/* ---- fields ---- */

static const struct text_case stored_fields[] = {
    {"A: 1\r\nB: 2\r\n", "", "A: 1\r\nB: 2\r\n"},
    {"A: 1\r\nConnection: b, close\r\nB: 2\r\n", "", "A: 1\r\n"},
    {"Keep-Alive: 5\r\nTE: x\r\nTrailer: y\r\nUpgrade: z\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Transfer-Encoding: chunked\r\nProxy-Connection: close\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Proxy-Authenticate: Basic\r\nProxy-Authentication-Info: x\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Content-Length: 5\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Cache-Control: private=\"a, x\"\r\nA: 1\r\nX: 2\r\nB: 3\r\n", "",
     "Cache-Control: private=\"a, x\"\r\nB: 3\r\n"},
    {"Unknown-Field:   some  thing \r\n", "", "Unknown-Field: some  thing\r\n"},
    {"Cache-Control: private=a\r\nA: 1\r\nB: 2\r\n", "", "Cache-Control: private=a\r\nB: 2\r\n"},
    {"Cache-Control: no-cache=\"a\"\r\nA: 1\r\n", "", "Cache-Control: no-cache=\"a\"\r\nA: 1\r\n"},
    {"Connection: a\r\nCONNECTION: c\r\nA: 1\r\nB: 2\r\nC: 3\r\n", "", "B: 2\r\n"},
    {"Set-Cookie: a\r\nSet-Cookie: b\r\n", "", "Set-Cookie: a\r\nSet-Cookie: b\r\n"},
    {"Empty:\r\n", "", "Empty: \r\n"},
};

static void check_stored_fields(void **state)
{
    const struct text_case *row = *state;
    char space[1024];
    struct buffer buffer = {.data = space, .capacity = sizeof space};

    stored_fields_write(text_of(row->name), (struct text){0}, &buffer);
    buffer_character(&buffer, '\0');
    assert_string_equal(space, row->result);
}

static const struct text_case merged[] = {
    {"A: 1\r\nB: 2\r\n", "B: 3\r\n", "A: 1\r\nB: 3\r\n"},
    {"A: 1\r\n", "B: 3\r\nB: 4\r\n", "A: 1\r\nB: 3\r\nB: 4\r\n"},
    {"A: 1\r\nA: 2\r\n", "a: 3\r\n", "a: 3\r\n"},
    {"Content-Encoding: gzip\r\n", "Content-Encoding: br\r\n", "Content-Encoding: gzip\r\n"},
    {"A: 1\r\n", "Content-Length: 0\r\nContent-Range: bytes 0-1/2\r\n", "A: 1\r\n"},
    {"A: 1\r\nAge: 30\r\n", "", "A: 1\r\n"},
    {"A: 1\r\nAge: 30\r\n", "Age: 3\r\n", "A: 1\r\nAge: 3\r\n"},
    {"A: 1\r\n", "Connection: A\r\nA: 2\r\n", "A: 1\r\n"},
    {"Content-Type: a/b\r\n", "Content-Type: c/d\r\n", "Content-Type: c/d\r\n"},
    {CC "private=\"a\"\r\n", "A: 1\r\nB: 2\r\n", CC "private=\"a\"\r\nB: 2\r\n"},
    {"A: 1\r\nB: 2\r\n", CC "private=\"a\"\r\n", "B: 2\r\n" CC "private=\"a\"\r\n"},
    {"A: 1\r\n", "A: 2\r\n" CC "private=\"a\"\r\n", CC "private=\"a\"\r\n"},
    {CC "private=\"a\"\r\n", CC "max-age=1\r\nA: 1\r\n", CC "max-age=1\r\nA: 1\r\n"},
    {"A: 1\r\n", "Proxy-Authenticate: Basic\r\nKeep-Alive: 3\r\nTransfer-Encoding: x\r\n",
     "A: 1\r\n"},
    {"Date: " EARLIER "\r\n", DATE, DATE},
    {"ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n", "ETag: W/\"a\"\r\n"},
};

static void check_merge(void **state)
{
    const struct text_case *row = *state;
    char space[1024];
    struct buffer buffer = {.data = space, .capacity = sizeof space};

    stored_fields_update(text_of(row->name), text_of(row->update), &buffer);
    buffer_character(&buffer, '\0');
    assert_string_equal(space, row->result);
}

static const struct text_case selections[] = {
    {"Vary: Accept\r\n", "Accept: a\r\n", "accept: a\n"},
    {"Vary: Accept\r\n", "ACCEPT:  a \r\n", "accept: a\n"},
    {"Vary: Accept\r\n", "Accept: a,b\r\n", "accept: a, b\n"},
    {"Vary: Accept\r\n", "Accept: a\r\nX: y\r\nAccept: b\r\n", "accept: a, b\n"},
    {"Vary: Accept\r\n", "", "accept\n"},
    {"Vary: Accept\r\n", "Accept:\r\n", "accept: \n"},
    {"Vary: Accept, Foo\r\n", "Foo: 1\r\nAccept: 2\r\n", "accept: 2\nfoo: 1\n"},
    {"Vary: Accept\r\nVary: Foo\r\n", "Foo: 1\r\nAccept: 2\r\n", "accept: 2\nfoo: 1\n"},
    {"Vary: Accept\r\n", "Accept: B\r\n", "accept: B\n"},
    {"Vary: Accept-Language\r\n", "Accept-Language: a ,, b\r\n", "accept-language:a, b\n"},
    {"Vary: Accept-Language\r\n", "Accept-Language: DE,en-GB\r\n", "accept-language:de, en-gb\n"},
    {"Vary: Accept-Language\r\n", "Accept-Language: en, de\r\n", "accept-language:en, de\n"},
    {"Vary: Accept-Language\r\n", "Accept-Language: en;q=0.5 , de\r\n",
     "accept-language:de, en;q=500\n"},
    {"Vary: Accept-Language\r\n", "Accept-Language: de ; Q=1.0, fr;q=1., en\t;\tq=0.50\r\n",
     "accept-language:de, fr, en;q=500\n"},
    {"Vary: Accept-Language\r\n", "Accept-Language: de\r\nAccept-Language: en;q=0, fr;q=0.001\r\n",
     "accept-language:de, fr;q=1, en;q=0\n"},
    {"Vary: Accept-Encoding\r\n", "Accept-Encoding: gzip;q=1,BR,*;q=0.1\r\n",
     "accept-encoding:gzip, br, *;q=100\n"},
    {"Vary: Accept-Encoding\r\n", "Accept-Encoding:\r\n", "accept-encoding: \n"},
    {"Vary: Accept-Encoding\r\n", "Accept-Encoding: GZIP;q=2\r\n", "accept-encoding: GZIP;q=2\n"},
    {"Vary: Accept-Encoding\r\n", "Accept-Encoding: GZIP;q=0.5;x\r\n",
     "accept-encoding: GZIP;q=0.5;x\n"},
    {"Vary: Accept-Encoding\r\n", "Accept-Encoding: GZIP;q=0.5000\r\n",
     "accept-encoding: GZIP;q=0.5000\n"},
    {"Vary: Accept-Encoding\r\n", "Accept-Encoding: G zip\r\n", "accept-encoding: G zip\n"},
    /* It looks like "de, en;q=0.5" does, and is none. */
    {"Vary: Accept-Language\r\n", "Accept-Language: de, en;q=500\r\n",
     "accept-language: de, en;q=500\n"},
    {"Vary: Accept-Encoding\r\n", "Accept-Encoding: A;q= 1\r\n", "accept-encoding: A;q= 1\n"},
    {"Vary: Accept-Encoding\r\n", "Connection: accept-encoding\r\nAccept-Encoding: a\r\n",
     "accept-encoding\n"},
    {"Vary: X\r\n", "X: a,b\r\n", "x: a,b\n"},
    {"Vary: X\r\n", "X: a, b\r\n", "x: a, b\n"},
    {"Vary: X\r\n", "X: a\r\nX: b\r\n", "x: a, b\n"},
    {"Vary: X\r\n", "X: a,\r\n", "x: a,\n"},
    {"Vary: X, Y\r\n", "X: a\r\nY: b\r\nConnection: x\r\n", "x\ny: b\n"},
    {"Vary: X\r\n", "Connection: close\r\nX: a\r\nConnection: te, X\r\n", "x\n"},
    {"Vary: TE, Upgrade\r\n", "TE: trailers\r\nUpgrade: x\r\n", "te\nupgrade\n"},
    {"Vary: *\r\n", "X: a\r\n", "*\n"},
    {"Vary: X, x\r\nVary: Y, X\r\n", "X: a\r\n", "x: a\ny\n"},
};

static void check_selection(void **state)
{
    const struct text_case *row = *state;
    char space[1024], names[256];
    struct buffer buffer = {.data = space, .capacity = sizeof space};
    struct buffer list = {.data = names, .capacity = sizeof names};

    vary_write_list(text_of(row->name), &list);
    vary_select((struct text){list.data, list.length}, text_of(row->update), &buffer);
    buffer_character(&buffer, '\0');
    assert_string_equal(space, row->result);
}

struct confirm_case {
    const char *name; /* the stored fields */
    const char *update;
    bool confirmed;
};

static const struct confirm_case confirmations[] = {
    {"ETag: \"a\"\r\n", "ETag: \"a\"\r\n", true},
    {"ETag: \"a\"\r\n", "ETag: \"b\"\r\n", false},
    {"ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n", true},
    {"ETag: W/\"a\"\r\n", "ETag: W/\"a\"\r\n", true},
    {"ETag: W/\"a\"\r\n", "ETag: \"a\"\r\n", false},
    {"ETag: W/\"a\"\r\n", "ETag: W/\"b\"\r\n", false},
    {"ETag: \"a\"\r\n", "", true},
    {"X: y\r\n", "ETag: \"a\"\r\n", false},
    {MODIFY, MODIFY, true},
    {MODIFY, "Last-Modified: " EARLIER "\r\n", false},
    {"X: y\r\n", MODIFY, false},
    {"ETag: \"a\"\r\n" MODIFY, "ETag: \"a\"\r\nLast-Modified: " EARLIER "\r\n", true},
    {"X: y\r\n", "", true},
    {"ETag: \"a\"\r\n", "ETag: \"a\"\r\nETag: \"b\"\r\n", false},
    {"ETag: \"a\"\r\n", "Last-Modified: " MINUTE "\r\n", false},
    {"ETag: \"a\"\r\n" MODIFY, MODIFY, true},
    {"ETag: \"a\"\r\n" MODIFY, "ETag: \"b\"\r\n" MODIFY, false},
    {MODIFY, "ETag: \"a\"\r\n" MODIFY, false},
    {MODIFY, "ETag: W/\"a\"\r\n" MODIFY, true},
    {MODIFY, "ETag: W/\"a\"\r\nLast-Modified: " EARLIER "\r\n", false},
    {MODIFY, "ETag: W/\"a\"\r\n", false},
    {MODIFY, MODIFY "Last-Modified: " EARLIER "\r\n", false},
    {"ETag: \"a\"\r\n", "ETag: \"A\"\r\n", false},
    {"ETag: W/\"a\"\r\n", "ETag: w/\"a\"\r\n", false},
};

static void check_confirmation(void **state)
{
    const struct confirm_case *row = *state;

    assert_int_equal(stored_fields_confirm(text_of(row->name), text_of(row->update)),
                     row->confirmed);
}

static const struct confirm_case heads[] = {
    {"ETag: \"a\"\r\n", "ETag: \"a\"\r\nContent-Length: 10\r\n", true},
    {"ETag: \"a\"\r\n", "ETag: \"a\"\r\nContent-Length: 11\r\n", false},
    {"ETag: \"a\"\r\n", "ETag: \"b\"\r\nContent-Length: 10\r\n", false},
    {"ETag: \"a\"\r\n" MODIFY, "ETag: \"a\"\r\nLast-Modified: " EARLIER "\r\n", false},
    {"X: y\r\n", "ETag: \"b\"\r\n", false},
    {"X: y\r\n", "Content-Length: x\r\n", false},
    {"X: y\r\n", "", true},
};

static void check_head(void **state)
{
    const struct confirm_case *row = *state;

    assert_int_equal(stored_fields_match_head(text_of(row->name), 10, text_of(row->update)),
                     row->confirmed);
}

int main(void)
{
    UNIT_TABLE(store_cases, check_store);
    unit_add("a status that is about one request is recognized", check_for_one, NULL);
    UNIT_TABLE(lifetimes, check_lifetime);
    UNIT_TABLE(targeted, check_targeted);
    UNIT_TABLE(permitted, check_permitted);
    unit_add("a heuristic lifetime needs a status that allows it, or public", check_guess, NULL);
    UNIT_TABLE(ages, check_age);
    unit_add("the age includes the delay of the response", check_delay, NULL);
    UNIT_TABLE(tags, check_tag);
    unit_add("a Last-Modified that is no date is ignored", check_modified, NULL);
    UNIT_TABLE(uses, check_use);
    UNIT_TABLE(bridges, check_bridge);
    UNIT_TABLE(stored_fields, check_stored_fields);
    UNIT_TABLE(merged, check_merge);
    UNIT_TABLE(selections, check_selection);
    UNIT_TABLE(confirmations, check_confirmation);
    UNIT_TABLE(heads, check_head);
    return unit_run("policy");
}
