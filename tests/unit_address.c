/* Tests of address.c: how names become addresses, and which of these are loopback. */
#include "common/net/address.h"

#include "tests/unit.h"

#include <arpa/inet.h>
#include <string.h>

static const char hosts[] = "# names\n"
                            "127.0.0.1 localhost\n"
                            "192.0.2.7\tBox box.example # not this\n"
                            "\n"
                            "2001:db8::1 box\r\n"
                            "10.0.0.1 localhost evil\n"
                            "nonsense broken\n"
                            "192.0.2.8 unended";

struct split_case {
    const char *name; /* the authority */
    const char *host; /* NULL: it is refused */
    uint16_t port;
};

static const struct split_case splits[] = {
    {"a", "a", 80},
    {"a:1", "a", 1},
    {"a:65535", "a", 65535},
    {"a:", "a", 80},
    {"127.0.0.1:8080", "127.0.0.1", 8080},
    {"[::1]", "::1", 80},
    {"[::1]:8", "::1", 8},
    {"a:0", NULL, 0},
    {"a:65536", NULL, 0},
    {"a:x", NULL, 0},
    {"a:1x", NULL, 0},
    {"a:-1", NULL, 0},
    {":80", NULL, 0},
    {"", NULL, 0},
    {"[::1", NULL, 0},
    {"[::1]x", NULL, 0},
    {"[]:1", NULL, 0},
    {"::1", NULL, 0},
};

static void check_split(void **state)
{
    const struct split_case *row = *state;
    struct text host;
    uint16_t port;
    bool good = address_split(text_of(row->name), 80, &host, &port);

    assert_int_equal(good, row->host != NULL);
    if (!good)
        return;
    assert_true(text_equal(host, text_of(row->host)));
    assert_int_equal(port, row->port);
}

struct find_case {
    const char *name;      /* the host */
    const char *addresses; /* with a blank before each */
    bool loopback;         /* the first */
};

static const struct find_case finds[] = {
    {"127.0.0.1", " 127.0.0.1", true},
    {"127.255.0.3", " 127.255.0.3", true},
    {"128.0.0.1", " 128.0.0.1", false},
    {"::1", " ::1", true},
    {"::2", " ::2", false},
    {"::ffff:127.0.0.1", " 127.0.0.1", true},
    {"::ffff:10.0.0.1", " 10.0.0.1", false},
    {"0.0.0.0", " 0.0.0.0", false},
    {"::", " ::", false},
    {"localhost", " 127.0.0.1 ::1", true},
    {"LOCALHOST.", " 127.0.0.1 ::1", true},
    {"a.localhost", " 127.0.0.1 ::1", true},
    {"box", " 192.0.2.7 2001:db8::1", false},
    {"BOX.example", " 192.0.2.7", false},
    {"evil", " 10.0.0.1", false},
    {"names", "", false},
    {"not", "", false},
    {"broken", "", false},
    {"192.0.2.7.", "", false},
    {"2130706433", "", false},
    {"0177.0.0.1", "", false},
    {"127.1", "", false},
    {"0x7f.0.0.1", "", false},
    {"", "", false},
    {"xlocalhost", "", false},
};

static void check_find(void **state)
{
    const struct find_case *row = *state;
    struct address_list list;
    char found[256] = "", name[INET6_ADDRSTRLEN];
    bool known = address_find(&list, text_of(hosts), text_of(row->name), 7);

    assert_int_equal(known, row->addresses[0] != '\0');
    for (int i = 0; i < list.count; i++) {
        const union address *address = &list.addresses[i];
        address_write(address, name, sizeof name);
        strcat(strcat(found, " "), name);
        assert_int_equal(address_port(address), 7);
    }
    assert_string_equal(found, row->addresses);
    if (known)
        assert_int_equal(address_is_loopback(&list.addresses[0]), row->loopback);
}

struct read_case {
    const char *name;    /* the text */
    const char *written; /* NULL: it is no address */
};

static const struct read_case reads[] = {
    {"127.0.0.1", "127.0.0.1"},
    {"::1", "::1"},
    {"2001:DB8:0:0::1", "2001:db8::1"},
    {"::ffff:127.0.0.1", "127.0.0.1"},
    {"::ffff:7f00:1", "127.0.0.1"},
    {"", NULL},
    {"localhost", NULL},
    {"[::1]", NULL},
    {"1.2.3", NULL},
    {"1.2.3.4.5", NULL},
    {"1.2.3.4 ", NULL},
    {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", NULL},
};

static void check_read(void **state)
{
    const struct read_case *row = *state;
    char written[INET6_ADDRSTRLEN] = "";
    union address address;
    bool good = address_read(text_of(row->name), 7, &address);

    assert_int_equal(good, row->written != NULL);
    if (!good)
        return;
    address_write(&address, written, sizeof written);
    assert_string_equal(written, row->written);
    assert_int_equal(address_port(&address), 7);
}

static void check_same(void **state)
{
    struct address_list a, b;

    (void)state;
    address_find(&a, TEXT(""), TEXT("127.0.0.1"), 7);
    address_find(&b, TEXT(""), TEXT("::ffff:127.0.0.1"), 7);
    assert_true(address_same(&a.addresses[0], &b.addresses[0]));
    address_find(&b, TEXT(""), TEXT("127.0.0.1"), 8);
    assert_false(address_same(&a.addresses[0], &b.addresses[0]));
    address_find(&b, TEXT(""), TEXT("::1"), 7);
    assert_false(address_same(&a.addresses[0], &b.addresses[0]));
    address_find(&b, TEXT(""), TEXT("::"), 7);
    assert_true(address_is_any(&b.addresses[0]));
    assert_false(address_is_any(&a.addresses[0]));
}

int main(void)
{
    UNIT_TABLE(splits, check_split);
    UNIT_TABLE(finds, check_find);
    UNIT_TABLE(reads, check_read);
    unit_add("two forms of an address are the same", check_same, NULL);
    return unit_run("address");
}
