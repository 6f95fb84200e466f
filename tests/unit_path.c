/* Tests of path.c: how the paths of targets are resolved, and which are refused. */
#include "common/http/path.h"

#include "tests/unit.h"

#include <stdlib.h>
#include <string.h>

struct path_case {
    const char *name; /* the target */
    enum path_verdict verdict;
    const char *path;
};

static const struct path_case cases[] = {
    {"/", PATH_GOOD, ""},
    {"//", PATH_GOOD, ""},
    {"/.", PATH_GOOD, ""},
    {"/./", PATH_GOOD, ""},
    {"/a", PATH_GOOD, "a"},
    {"/a/", PATH_GOOD, "a/"},
    {"/a/b", PATH_GOOD, "a/b"},
    {"//a///b//", PATH_GOOD, "a/b/"},
    {"/a/./b", PATH_GOOD, "a/b"},
    {"/a/.", PATH_GOOD, "a/"},
    {"/a/./", PATH_GOOD, "a/"},
    {"/a/..", PATH_GOOD, ""},
    {"/a/../", PATH_GOOD, ""},
    {"/a/../b", PATH_GOOD, "b"},
    {"/a/b/..", PATH_GOOD, "a/"},
    {"/a/b/../c", PATH_GOOD, "a/c"},
    {"/a/b/../../c", PATH_GOOD, "c"},
    {"/a//../b", PATH_GOOD, "b"},
    {"/a/b/c/../../d/", PATH_GOOD, "a/d/"},
    {"/a..b", PATH_GOOD, "a..b"},
    {"/a.", PATH_GOOD, "a."},
    {"/a..", PATH_GOOD, "a.."},
    {"/%61", PATH_GOOD, "a"},
    {"/%41%5a", PATH_GOOD, "AZ"},
    {"/%5A%7a", PATH_GOOD, "Zz"},
    {"/%20", PATH_GOOD, " "},
    {"/a+b", PATH_GOOD, "a+b"},
    {"/%2561", PATH_GOOD, "%61"},
    {"/%25", PATH_GOOD, "%"},
    {"/%3f%23", PATH_GOOD, "?#"},
    {"/%0d%0a", PATH_GOOD, "\r\n"},
    {"/%ff%80", PATH_GOOD, "\xff\x80"},
    {"/%5c..%5cx", PATH_GOOD, "\\..\\x"},
    {"/a/%2e", PATH_GOOD, "a/"},
    {"/a/%2e%2e", PATH_GOOD, ""},
    {"/a/.%2E/b", PATH_GOOD, "b"},
    {"/~a", PATH_GOOD, "~a"},
    {"/%252e%252e/x", PATH_GOOD, "%2e%2e/x"},

    {"/..", PATH_CLIMBS, NULL},
    {"/../", PATH_CLIMBS, NULL},
    {"/../a", PATH_CLIMBS, NULL},
    {"//../a", PATH_CLIMBS, NULL},
    {"/./../a", PATH_CLIMBS, NULL},
    {"/a/../..", PATH_CLIMBS, NULL},
    {"/a/../../b", PATH_CLIMBS, NULL},
    {"/a/b/../../../c", PATH_CLIMBS, NULL},
    {"/%2e%2e", PATH_CLIMBS, NULL},
    {"/%2e./a", PATH_CLIMBS, NULL},
    {"/.%2e/a", PATH_CLIMBS, NULL},
    {"/a/%2e%2e/%2e%2e/b", PATH_CLIMBS, NULL},

    {"/%", PATH_MALFORMED, NULL},
    {"/%4", PATH_MALFORMED, NULL},
    {"/%g1", PATH_MALFORMED, NULL},
    {"/%1g", PATH_MALFORMED, NULL},
    {"/%%41", PATH_MALFORMED, NULL},
    {"/%-1", PATH_MALFORMED, NULL},
    {"/% 1", PATH_MALFORMED, NULL},
    {"/a/%", PATH_MALFORMED, NULL},
    {"/a%4", PATH_MALFORMED, NULL},
    {"/%u0041", PATH_MALFORMED, NULL},
    {"/%00", PATH_MALFORMED, NULL},
    {"/a%00b", PATH_MALFORMED, NULL},
    {"/a/%00/..", PATH_MALFORMED, NULL},

    {"/.a", PATH_HIDDEN, NULL},
    {"/...", PATH_HIDDEN, NULL},
    {"/..a", PATH_HIDDEN, NULL},
    {"/.../", PATH_HIDDEN, NULL},
    {"/a/.b", PATH_HIDDEN, NULL},
    {"/a/.b/c", PATH_HIDDEN, NULL},
    {"/%2ea", PATH_HIDDEN, NULL},
    {"/%2e%2e%2e", PATH_HIDDEN, NULL},
    {"/a/../.b", PATH_HIDDEN, NULL},
    {"/%2f", PATH_HIDDEN, NULL},
    {"/a%2Fb", PATH_HIDDEN, NULL},
    {"/..%2fa", PATH_HIDDEN, NULL},
    {"/%2e%2e%2fa", PATH_HIDDEN, NULL},
};

static void check_case(void **state)
{
    const struct path_case *row = *state;
    char path[PATH_LIMIT];
    size_t length;

    assert_int_equal(path_resolve(text_of(row->name), path, PATH_LIMIT, &length), row->verdict);
    if (row->path == NULL)
        return;
    assert_string_equal(path, row->path);
    assert_int_equal(length, strlen(row->path));
}

/* Targets of any length fit or are refused. The memory has the exact size: a sanitizer sees each
 * byte too far. */
static void check_lengths(void **state)
{
    static const char *const patterns[] = {"/x", "/xx", "//", "/x/", "/%78", "/x/..", "/./"};

    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        size_t period = strlen(patterns[i]);
        for (size_t size = PATH_LIMIT - 20; size < PATH_LIMIT + 20; size++) {
            char *target = malloc(size), *path = malloc(PATH_LIMIT);
            size_t length;
            enum path_verdict verdict;

            assert_non_null(target);
            assert_non_null(path);
            for (size_t at = 0; at < size; at++)
                target[at] = patterns[i][at % period];
            verdict = path_resolve((struct text){target, size}, path, PATH_LIMIT, &length);
            assert_true(verdict == PATH_GOOD || verdict == PATH_LONG || verdict == PATH_MALFORMED ||
                        verdict == PATH_HIDDEN);
            if (verdict == PATH_GOOD) {
                assert_true(length < PATH_LIMIT);
                assert_int_equal(path[length], '\0');
            }
            free(target);
            free(path);
        }
    }
}

static void check_long(void **state)
{
    static char target[3 * PATH_LIMIT];
    char path[PATH_LIMIT];
    size_t length;

    (void)state;
    memset(target, 'x', sizeof target);
    target[0] = '/';
    assert_int_equal(path_resolve((struct text){target, sizeof target}, path, PATH_LIMIT, &length),
                     PATH_LONG);
    assert_int_equal(path_resolve((struct text){target, 4000}, path, PATH_LIMIT, &length),
                     PATH_GOOD);
    assert_int_equal(length, 3999);
}

/* Any two segments together lead to a path below the root. */
static void check_pairs(void **state)
{
    static const char *const segments[] = {"a",   "..",     ".",    "",  "%2e%2e", "%2e", "b.c",
                                           "..a", "%2e%2f", ".git", "%", "...",    " ",   "a%"};
    const size_t count = sizeof segments / sizeof segments[0];

    (void)state;
    for (size_t i = 0; i < count * count * count; i++) {
        char target[64], path[PATH_LIMIT];
        size_t length = 0;

        target[0] = '\0';
        strcat(strcat(target, "/"), segments[i % count]);
        strcat(strcat(target, "/"), segments[i / count % count]);
        strcat(strcat(target, "/"), segments[i / count / count]);
        if (path_resolve(text_of(target), path, PATH_LIMIT, &length) != PATH_GOOD)
            continue;
        assert_int_equal(strlen(path), length);
        assert_true(path[0] != '/' && path[0] != '.');
        assert_null(strstr(path, "//"));
        assert_null(strstr(path, "/."));
    }
}

int main(void)
{
    UNIT_TABLE(cases, check_case);
    unit_add("a target of any length fits or is refused", check_lengths, NULL);
    unit_add("a target that is much too long is refused", check_long, NULL);
    unit_add("all triples of segments stay below the root", check_pairs, NULL);
    return unit_run("path");
}
