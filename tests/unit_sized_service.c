/* Tests of sized_service.c: documents of all sizes, and paths that are refused. */
#include "common/base/clock.h"
#include "common/files/sized_service.h"

#include "tests/unit.h"

#include <string.h>

static const struct moment now = {.seconds = 1700000000};
static const struct sized_service sized = {.max_age = 60};
static const struct service_context context = {.state = &sized};

static void ask(struct response *response, const char *path)
{
    const struct request request = {.method = METHOD_GET, .path = text_of(path)};

    response_start(response);
    service_sized.answer(&context, &request, now, response);
}

/* Takes the text off the head of the rest; false if the rest begins otherwise. */
static bool take(struct text *left, const char *text)
{
    size_t length = strlen(text);

    if (left->length < length || memcmp(left->data, text, length) != 0)
        return false;
    left->data += length;
    left->length -= length;
    return true;
}

/* Each element must be closed, and the text must not contain markup. */
static void assert_document(struct text page, unsigned size)
{
    char title[16];
    size_t text;

    snprintf(title, sizeof title, "%u bytes", size);
    assert_int_equal(page.length, size);
    assert_true(take(&page, "<!DOCTYPE html>\n<html lang=\"en\"><head><title>"));
    assert_true(take(&page, title));
    assert_true(take(&page, "</title></head><body><p>"));
    text = text_find(page, '<');
    assert_true(text >= 3);
    assert_int_equal(text_find((struct text){page.data, text}, '&'), text);
    assert_null(memchr(page.data, '\0', page.length));
    page.data += text;
    page.length -= text;
    assert_true(take(&page, "</p></body></html>\n"));
    assert_int_equal(page.length, 0);
}

static void test_all_sizes(void **state)
{
    (void)state;
    for (unsigned size = 100; size <= 20000; size++) {
        struct response response;
        char path[16];

        snprintf(path, sizeof path, "/%u", size);
        ask(&response, path);
        assert_int_equal(response.status, 200);
        assert_true(response.has_validators);
        assert_false(response.etag.overflow);
        assert_int_equal(response.caching, size % 2 == 1 ? CACHING_FOR : CACHING_VALIDATED);
        assert_document((struct text){response.body.memory, (size_t)response.body.length}, size);
        response_end(&response);
    }
}

/* Returns true if two responses for the path have the same validators. */
static bool is_constant(const char *path)
{
    struct response first, second;
    bool same;

    ask(&first, path);
    ask(&second, path);
    same = text_equal((struct text){first.etag.data, first.etag.length},
                      (struct text){second.etag.data, second.etag.length});
    response_end(&first);
    response_end(&second);
    return same;
}

static void test_versions(void **state)
{
    (void)state;
    assert_true(is_constant("/101"));
    assert_true(is_constant("/19999"));
    assert_false(is_constant("/100"));
    assert_false(is_constant("/20000"));
}

struct path_case {
    const char *name;
};

static const struct path_case refused[] = {
    {"/"},
    {"/99"},
    {"/20001"},
    {"/0"},
    {"/0150"},
    {"/00000"},
    {"/150/"},
    {"//150"},
    {"/150a"},
    {"/a150"},
    {"/-150"},
    {"/+150"},
    {"/150.0"},
    {"/1e3"},
    {"/0x96"},
    {"/%31%35%30"},
    {"/../150"},
    {"/150 "},
    {"/small.txt"},
    {"/18446744073709551766"},
    {"/1000000000000000000000000000000"},
};

static void test_refused(void **state)
{
    const struct path_case *row = *state;
    struct response response;

    ask(&response, row->name);
    assert_int_equal(response.status, 400);
    assert_int_equal(response.caching, CACHING_UNSAID);
    assert_false(response.has_validators);
    response_end(&response);
}

int main(void)
{
    unit_add("documents of all sizes from 100 to 20,000 are well-formed", test_all_sizes, NULL);
    unit_add("odd documents are constant, even ones change", test_versions, NULL);
    UNIT_TABLE(refused, test_refused);
    return unit_run("sized");
}
