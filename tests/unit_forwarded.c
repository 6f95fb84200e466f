/* Tests of forwarded.c: what an origin learns of the client, and what a client cannot forge. */
#include "common/proxy/forwarded.h"

#include "tests/unit.h"

struct row {
    const char *name;
    struct forwarded forwarded;
    const char *fields, *expected;
};

#define V4   .address = TEXT_IS("192.0.2.1"), .scheme = TEXT_IS("http")
#define V6   .address = TEXT_IS("2001:db8::1"), .scheme = TEXT_IS("https")
#define HOST .host = TEXT_IS("a.example:80")
#define SAID                                                                                       \
    "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\nX-Forwarded-Proto: https\r\n"       \
    "Forwarded: for=10.0.0.1;proto=https\r\n"

static struct row rows[] = {
    {"off", {FORWARDED_OFF, false, V4}, "", ""},
    {"off: what the client says goes nowhere", {FORWARDED_OFF, false, V4}, SAID, ""},
    {"standard", {FORWARDED_STANDARD, false, V4}, "", "Forwarded: for=192.0.2.1;proto=http\r\n"},
    {"standard, IPv6",
     {FORWARDED_STANDARD, false, V6},
     "",
     "Forwarded: for=\"[2001:db8::1]\";proto=https\r\n"},
    {"standard, with a host",
     {FORWARDED_STANDARD, false, V4, HOST},
     "",
     "Forwarded: for=192.0.2.1;proto=http;host=\"a.example:80\"\r\n"},
    {"standard, with a host that would end its quotes",
     {FORWARDED_STANDARD, false, V4, .host = TEXT_IS("a\";for=b")},
     "",
     "Forwarded: for=192.0.2.1;proto=http\r\n"},
    {"standard, of a client without an address",
     {FORWARDED_STANDARD, false, .scheme = TEXT_IS("http")},
     "",
     "Forwarded: for=unknown;proto=http\r\n"},
    {"x",
     {FORWARDED_X, false, V4},
     "",
     "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"},
    {"x, IPv6, with a host",
     {FORWARDED_X, false, V6, HOST},
     "",
     "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n"
     "X-Forwarded-Host: a.example:80\r\n"},
    {"both: what the client says is replaced",
     {FORWARDED_BOTH, false, V4},
     SAID,
     "Forwarded: for=192.0.2.1;proto=http\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: "
     "http\r\n"},
    {"both, to append",
     {FORWARDED_BOTH, true, V4},
     SAID,
     "Forwarded: for=10.0.0.1;proto=https, for=192.0.2.1;proto=http\r\n"
     "X-Forwarded-For: 10.0.0.1, 10.0.0.2, 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"},
    {"to append to nothing",
     {FORWARDED_X, true, V4},
     "X-Forwarded-For: \r\n",
     "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"},
    {"to append behind an open quote",
     {FORWARDED_STANDARD, true, V4},
     "Forwarded: for=\"10.0.0.1\r\nForwarded: for=\"a\\\"b\"\r\n",
     "Forwarded: for=\"a\\\"b\", for=192.0.2.1;proto=http\r\n"},
};

static void check_write(void **state)
{
    const struct row *row = *state;
    char space[1024];
    struct buffer output = {.data = space, .capacity = sizeof space};

    forwarded_write(&row->forwarded, text_of(row->fields), &output);
    buffer_character(&output, '\0');
    assert_string_equal(space, row->expected);
}

struct name_row {
    const char *name;
    bool replaced, replaced_to_append;
};

static struct name_row names[] = {
    {"Forwarded", true, true},
    {"forwarded", true, true},
    {"X-Forwarded-For", true, true},
    {"x-forwarded-for", true, true},
    {"X-Forwarded-Proto", true, true},
    {"X-Forwarded-Host", true, false},
    {"X-Forwarded-Port", true, false},
    {"X-Forwarded-Anything", true, false},
    {"X-Real-IP", true, false},
    {"X_Forwarded_For", true, true},
    {"X-Forwarded_Port", true, true},
    {"X_Real_IP", true, true},
    {"X-Forwarded", false, false},
    {"X-Real-IPs", false, false},
    {"Forwarded-For", false, false},
    {"Via", false, false},
    {"Not-X-Forwarded-For", false, false},
};

static void check_name(void **state)
{
    const struct name_row *row = *state;
    struct forwarded forwarded = {.fields = FORWARDED_BOTH};

    assert_int_equal(forwarded_replaces(&forwarded, text_of(row->name)), row->replaced);
    forwarded.append = true;
    assert_int_equal(forwarded_replaces(&forwarded, text_of(row->name)), row->replaced_to_append);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        unit_add(rows[i].name, check_write, &rows[i]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unit_add(names[i].name, check_name, &names[i]);
    return unit_run("forwarded");
}
