/* Tests of structured.c: what a dictionary of a structured field is, and what its members are. */
#include "common/http/structured.h"

#include "tests/unit.h"

#include <string.h>

struct good_case {
    const char *name; /* the dictionary */
    const char *members;
};

/* Each member as its key, the letter of its kind, and the number of an integer or a boolean. */
static const struct good_case good[] = {
    {"", ""},
    {"  ", ""},
    {"a", "a?1"},
    {"a;b;c=1;  d=\"x\"", "a?1"},
    {"a=?0", "a?0"},
    {"a=?1;x", "a?1"},
    {"max-age=60, no-store", "max-age i60 no-store?1"},
    {"max-age=60,no-store", "max-age i60 no-store?1"},
    {"max-age=60\t,\t no-store  ", "max-age i60 no-store?1"},
    {"a=1, a=2", "a i1 a i2"},
    {"a=-0", "a i0"},
    {"a=-999999999999999", "a i-999999999999999"},
    {"a=000000000000001", "a i1"},
    {"a=1.5, b=-0.123", "a d b d"},
    {"a=123456789012.1", "a d"},
    {"a=\"\", b=\"x, y\", c=\"\\\"\\\\\"", "a s b s c s"},
    {"a=foo, b=*x, c=T:/a!#$%&'*+-.^_`|~9", "a t b t c t"},
    {"a=::, b=:YQ==:, c=:Y+/9:", "a b b b c b"},
    {"a=@1659578233, b=@-1", "a @1659578233 b @-1"},
    {"a=%\"b%c3%bcr%22o\"", "a %"},
    {"a=%\"%ed%9f%bf%f4%8f%bf%bf%e0%a0%80%f0%90%80%80\"", "a %"},
    {"a=(), b=(  ), c=( 1  \"x\";p=2 y ), d=(:YQ==:);q", "a ( b ( c ( d ("},
    {"*a.b_c-9*=1", "*a.b_c-9* i1"},
};

static const struct good_case bad[] = {
    {"A", ""},
    {"1", ""},
    {"-a", ""},
    {"a=", ""},
    {"a =1", ""},
    {"a= 1", ""},
    {"a,", ""},
    {"a, ", ""},
    {",a", ""},
    {"a,,b", ""},
    {"a b", ""},
    {"a;", ""},
    {"a;B", ""},
    {"a ;b", ""},
    {"a;b=", ""},
    {"a=1;b=(1)", ""},
    {"\ta", ""},
    {"a=?2", ""},
    {"a=?", ""},
    {"a=-", ""},
    {"a=--1", ""},
    {"a=+1", ""},
    {"a=1234567890123456", ""},
    {"a=1.", ""},
    {"a=.5", ""},
    {"a=1.1234", ""},
    {"a=1234567890123.1", ""},
    {"a=1x", ""},
    {"a=\"", ""},
    {"a=\"x", ""},
    {"a=\"\\x\"", ""},
    {"a=\"\\", ""},
    {"a=\"\x7f\"", ""},
    {"a=\"\xc3\xbc\"", ""},
    {"a='x'", ""},
    {"a=:", ""},
    {"a=:Y*:", ""},
    {"a=:Y=Y:", ""},
    {"a=@1.5", ""},
    {"a=@x", ""},
    {"a=%x", ""},
    {"a=%\"", ""},
    {"a=%\"x", ""},
    {"a=%\"%C3%BC\"", ""},
    {"a=%\"%c3\"", ""},
    {"a=%\"%c3x\"", ""},
    {"a=%\"%c0%80\"", ""},
    {"a=%\"%e0%80%80\"", ""},
    {"a=%\"%ed%a0%80\"", ""},
    {"a=%\"%f4%90%80%80\"", ""},
    {"a=%\"%f5%80%80%80\"", ""},
    {"a=%\"%2\"", ""},
    {"a=%\"%/0\"", ""},
    {"a=(", ""},
    {"a=(1", ""},
    {"a=(1 2", ""},
    {"a=(1\t2)", ""},
    {"a=(1,2)", ""},
    {"a=((1))", ""},
    {"a=(1\"x\")", ""},
    {"a=1, b=%", "a i1"},
};

static void write_members(struct text text, struct buffer *members)
{
    static const char letters[] = "idstb?@%(";
    struct structured_member member;

    while (structured_next(&text, &member)) {
        if (members->length > 0)
            buffer_character(members, ' ');
        buffer_add(members, member.key);
        if (member.kind != STRUCTURED_BOOLEAN)
            buffer_character(members, ' ');
        buffer_character(members, letters[member.kind]);
        if (member.kind == STRUCTURED_BOOLEAN)
            buffer_character(members, member.truth ? '1' : '0');
        if (member.kind != STRUCTURED_INTEGER && member.kind != STRUCTURED_DATE)
            continue;
        if (member.integer < 0)
            buffer_character(members, '-');
        buffer_number(members, (uint64_t)(member.integer < 0 ? -member.integer : member.integer));
    }
}

static void check_good(void **state)
{
    const struct good_case *row = *state;
    char space[256];
    struct buffer members = {.data = space, .capacity = sizeof space - 1};

    assert_true(structured_is_dictionary(text_of(row->name)));
    write_members(text_of(row->name), &members);
    space[members.length] = '\0';
    assert_string_equal(space, row->members);
}

static void check_bad(void **state)
{
    const struct good_case *row = *state;

    assert_false(structured_is_dictionary(text_of(row->name)));
}

static void check_nul(void **state)
{
    (void)state;
    assert_false(structured_is_dictionary(TEXT("a\0")));
    assert_false(structured_is_dictionary(TEXT("a=\"\0\"")));
    assert_false(structured_is_dictionary(TEXT("\0")));
}

int main(void)
{
    UNIT_TABLE(good, check_good);
    UNIT_TABLE(bad, check_bad);
    unit_add("NUL", check_nul, NULL);
    return unit_run("structured");
}
