/* The rules of a shared cache: what may be stored, how long it is fresh, and how it may be used. */
#include "common/policy.h"

#include "tests/unit.h"

#include <string.h>

#define NOW     INT64_C(784111777)
#define DATE    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define MINUTE  "Sun, 06 Nov 1994 08:50:37 GMT"
#define EARLIER "Sun, 06 Nov 1994 08:48:37 GMT"
#define MODIFY  "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT\r\n" /* 1,000 seconds before */

static struct policy_reply read_reply(int status, const char *fields)
{
    struct policy_reply reply;

    policy_read(&reply, status, text_of(fields), NOW, NOW);
    return reply;
}

/* ---- storing ---- */

struct store_case {
    const char *name; /* the fields of the reply */
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
};

static void check_store(void **state)
{
    const struct store_case *row = *state;
    struct policy_reply reply = read_reply(row->status, row->name);

    assert_int_equal(policy_may_store(&reply, text_of(row->request), text_of(row->name)),
                     row->stored);
}

/* ---- freshness ---- */

struct number_case {
    const char *name; /* the fields of the reply */
    int64_t seconds;
};

static const struct number_case lifetimes[] = {
    {"", 0},
    {"Cache-Control: max-age=60\r\n", 60},
    {"Cache-Control: Max-Age=60\r\n", 60},
    {"Cache-Control: max-age=\"60\"\r\n", 60},
    {"Cache-Control: max-age=060\r\n", 60},
    {"Cache-Control: max-age=99999999999999999999999\r\n", POLICY_FOREVER},
    {"Cache-Control: max-age=4294967296\r\n", POLICY_FOREVER},
    {"Cache-Control: max-age=-1\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=+1\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=1.5\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=x\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age= 60\r\n" MODIFY DATE, 0},
    {"Cache-Control: max-age=60, max-age=60\r\n", 60},
    {"Cache-Control: max-age=60, max-age=61\r\n", 0},
    {"Cache-Control: max-age=60\r\nCache-Control: max-age=30\r\n", 0},
    {"Cache-Control: max-age=60, s-maxage=30\r\n", 30},
    {"Cache-Control: s-maxage=90\r\nExpires: " MINUTE "\r\n" DATE, 90},
    {"Cache-Control: s-maxage=x, max-age=60\r\n", 0},
    {"Cache-Control: max-age=5\r\nExpires: " MINUTE "\r\n" DATE, 5},
    {"Cache-Control: x=\"max-age=60\"\r\n", 0},
    {"Expires: " MINUTE "\r\n" DATE, 60},
    {"Expires: " MINUTE "\r\n", 60},
    {"Expires: Sunday, 06-Nov-94 08:50:37 GMT\r\n" DATE, 60},
    {"Expires: Sun Nov  6 08:50:37 1994\r\n" DATE, 60},
    {"Expires: " MINUTE "\r\nDate: " EARLIER "\r\n", 120},
    {"Expires: " EARLIER "\r\n" DATE, 0},
    {"Expires: 0\r\n" MODIFY DATE, 0},
    {"Expires:\r\n" MODIFY DATE, 0},
    {"Expires: " MINUTE "\r\nExpires: " MINUTE "\r\n" DATE, 0},
    {MODIFY DATE, 100},
    {MODIFY, 100},
    {"Last-Modified: Sun, 06 Nov 1904 08:49:37 GMT\r\n" DATE, POLICY_HEURISTIC_LIMIT},
    {"Last-Modified: " MINUTE "\r\n" DATE, 0},
    {"Last-Modified: yesterday\r\n" DATE, 0},
};

static void check_lifetime(void **state)
{
    const struct number_case *row = *state;
    struct policy_reply reply = read_reply(200, row->name);

    assert_int_equal(policy_lifetime(&reply), row->seconds);
}

static void check_guess(void **state)
{
    struct policy_reply reply = read_reply(302, MODIFY DATE);

    (void)state;
    assert_int_equal(policy_lifetime(&reply), 0);
    reply = read_reply(302, "Cache-Control: public\r\n" MODIFY DATE);
    assert_int_equal(policy_lifetime(&reply), 100);
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
    {"Age: 99999999999999999999\r\n" DATE, POLICY_FOREVER},
};

static void check_age(void **state)
{
    const struct number_case *row = *state;
    struct policy_reply reply = read_reply(200, row->name);

    assert_int_equal(policy_age(&reply, NOW + 5), row->seconds);
}

static void check_delay(void **state)
{
    struct policy_reply reply;

    (void)state;
    policy_read(&reply, 200, TEXT("Age: 10\r\n"), NOW - 7, NOW);
    assert_int_equal(policy_age(&reply, NOW), 17);
    assert_int_equal(policy_age(&reply, NOW + 3), 20);
    assert_int_equal(policy_age(&reply, NOW - 3), 17); /* the clock was set back */
    policy_read(&reply, 200, TEXT("Age: 10\r\n"), NOW + 7, NOW);
    assert_int_equal(policy_age(&reply, NOW), 10);
}

/* ---- use ---- */

struct use_case {
    const char *name; /* of the reply, which is 10 seconds old */
    const char *request;
    enum policy_use use;
};

#define CC "Cache-Control: "

static const struct use_case uses[] = {
    {CC "max-age=11\r\n", "", POLICY_FRESH},
    {CC "max-age=10\r\n", "", POLICY_VALIDATE},
    {CC "max-age=9\r\n", "", POLICY_VALIDATE},
    {CC "max-age=60, no-cache\r\n", "", POLICY_VALIDATE},
    {CC "max-age=60, no-cache\r\n", CC "max-stale\r\n", POLICY_VALIDATE},
    {CC "max-age=60, no-cache=\"x\"\r\n", "", POLICY_FRESH},
    {CC "max-age=60, no-cache=\r\n", "", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "no-cache\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "no-cache=x\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", "Pragma: no-cache\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", "Pragma: no-cache\r\n" CC "max-age=60\r\n", POLICY_FRESH},
    {CC "max-age=60\r\nPragma: no-cache\r\n", "", POLICY_FRESH},
    {CC "max-age=60\r\n", CC "max-age=10\r\n", POLICY_FRESH},
    {CC "max-age=60\r\n", CC "max-age=9\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "max-age=0\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "max-age=x\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "max-age=9, max-stale=9\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=50\r\n", POLICY_FRESH},
    {CC "max-age=60\r\n", CC "min-fresh=51\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=x\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "min-fresh=51, max-stale\r\n", POLICY_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale=5\r\n", POLICY_STALE},
    {CC "max-age=5\r\n", CC "max-stale=4\r\n", POLICY_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale\r\n", POLICY_STALE},
    {CC "max-age=5\r\n", CC "max-stale=x\r\n", POLICY_VALIDATE},
    {CC "max-age=5\r\n", CC "max-stale, max-age=10\r\n", POLICY_STALE},
    {CC "max-age=5\r\n", CC "max-stale, max-age=9\r\n", POLICY_VALIDATE},
    {CC "max-age=60\r\n", CC "max-stale\r\n", POLICY_FRESH},
    {CC "max-age=5, must-revalidate\r\n", CC "max-stale\r\n", POLICY_VALIDATE},
    {CC "max-age=5, proxy-revalidate\r\n", CC "max-stale\r\n", POLICY_VALIDATE},
    {CC "s-maxage=5\r\n", CC "max-stale\r\n", POLICY_VALIDATE},
    {CC "max-age=60, must-revalidate\r\n", "", POLICY_FRESH},
    {CC "max-age=5, stale-while-revalidate=6\r\n", "", POLICY_MEANTIME},
    {CC "max-age=5, stale-while-revalidate=5\r\n", "", POLICY_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=x\r\n", "", POLICY_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60\r\n", CC "max-age=30\r\n", POLICY_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60\r\n", CC "no-cache\r\n", POLICY_VALIDATE},
    {CC "max-age=5, stale-while-revalidate=60, must-revalidate\r\n", "", POLICY_VALIDATE},
    {CC "s-maxage=5, stale-while-revalidate=60\r\n", "", POLICY_VALIDATE},
    {CC "stale-while-revalidate=60\r\n", "", POLICY_MEANTIME},
    {"Expires: 0\r\n", "", POLICY_VALIDATE},
    {"", "", POLICY_VALIDATE},
    {MODIFY, "", POLICY_FRESH},
};

static void check_use(void **state)
{
    const struct use_case *row = *state;
    struct policy_reply reply = read_reply(200, row->name);
    struct directives request;

    policy_directives(text_of(row->request), true, &request);
    assert_int_equal(policy_judge(&reply, &request, NOW + 10), row->use);
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
};

static void check_bridge(void **state)
{
    const struct use_case *row = *state;
    struct policy_reply reply = read_reply(200, row->name);
    struct directives request;

    policy_directives(text_of(row->request), true, &request);
    assert_int_equal(policy_bridges_error(&reply, &request, NOW + 10), (bool)row->use);
}

/* ---- fields ---- */

struct text_case {
    const char *name;
    const char *update;
    const char *result;
};

static const struct text_case kept[] = {
    {"A: 1\r\nB: 2\r\n", "", "A: 1\r\nB: 2\r\n"},
    {"A: 1\r\nConnection: b, close\r\nB: 2\r\n", "", "A: 1\r\n"},
    {"Keep-Alive: 5\r\nTE: x\r\nTrailer: y\r\nUpgrade: z\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Transfer-Encoding: chunked\r\nProxy-Connection: close\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Proxy-Authenticate: Basic\r\nProxy-Authentication-Info: x\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Content-Length: 5\r\nA: 1\r\n", "", "A: 1\r\n"},
    {"Cache-Control: private=\"a, x\"\r\nA: 1\r\nX: 2\r\nB: 3\r\n", "",
     "Cache-Control: private=\"a, x\"\r\nB: 3\r\n"},
    {"Unknown-Field:   some  thing \r\n", "", "Unknown-Field: some  thing\r\n"},
};

static void check_keep(void **state)
{
    const struct text_case *row = *state;
    char space[1024];
    struct buffer buffer = {.data = space, .capacity = sizeof space};

    policy_keep(text_of(row->name), &buffer);
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
};

static void check_merge(void **state)
{
    const struct text_case *row = *state;
    char space[1024];
    struct buffer buffer = {.data = space, .capacity = sizeof space};

    policy_merge(text_of(row->name), text_of(row->update), &buffer);
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
};

static void check_selection(void **state)
{
    const struct text_case *row = *state;
    char space[1024], names[256];
    struct buffer buffer = {.data = space, .capacity = sizeof space};
    struct buffer list = {.data = names, .capacity = sizeof names};

    assert_true(policy_varies(text_of(row->name)));
    policy_vary_list(text_of(row->name), &list);
    policy_select((struct text){list.data, list.length}, text_of(row->update), &buffer);
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
};

static void check_confirmation(void **state)
{
    const struct confirm_case *row = *state;

    assert_int_equal(policy_confirms(text_of(row->name), text_of(row->update)), row->confirmed);
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

    assert_int_equal(policy_same_head(text_of(row->name), 10, text_of(row->update)),
                     row->confirmed);
}

int main(void)
{
    UNIT_TABLE(store_cases, check_store);
    UNIT_TABLE(lifetimes, check_lifetime);
    unit_add("a heuristic lifetime needs a status that allows it, or public", check_guess, NULL);
    UNIT_TABLE(ages, check_age);
    unit_add("the delay of the reply counts", check_delay, NULL);
    UNIT_TABLE(uses, check_use);
    UNIT_TABLE(bridges, check_bridge);
    UNIT_TABLE(kept, check_keep);
    UNIT_TABLE(merged, check_merge);
    UNIT_TABLE(selections, check_selection);
    UNIT_TABLE(confirmations, check_confirmation);
    UNIT_TABLE(heads, check_head);
    return unit_run("policy");
}
