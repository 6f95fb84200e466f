/* Tests of address_limit.c: which addresses count as one, how many connections each may have, and
 * that counts end. */
#include "common/net/address_limit.h"

#include "tests/unit.h"

#include <arpa/inet.h>
#include <limits.h>
#include <string.h>

static union address address_of(const char *text)
{
    union address address;

    assert_true(address_read(text_of(text), 80, &address));
    return address;
}

static struct address_limit begin(int most, int most_loopback, int rate)
{
    static _Alignas(64) unsigned char memory[64 * 1024];
    struct address_limit limit = {.most = most, .most_loopback = most_loopback, .rate = rate};

    assert_in_range(address_limit_size(100), 1, sizeof memory);
    memset(memory, 0, sizeof memory);
    assert_true(address_limit_open(&limit, 100, memory));
    return limit;
}

static bool enter(struct address_limit *limit, const char *text, _Atomic uint32_t *place)
{
    const union address address = address_of(text);

    return address_limit_enter(limit, &address, place);
}

static void check_most(void **state)
{
    struct address_limit limit = begin(2, 0, 0);
    _Atomic uint32_t one, two, other;

    (void)state;
    assert_true(enter(&limit, "192.0.2.1", &one));
    assert_true(enter(&limit, "192.0.2.1", &two));
    assert_int_not_equal(one, 0);
    assert_false(enter(&limit, "192.0.2.1", &other));
    assert_int_equal(other, 0);
    assert_true(enter(&limit, "192.0.2.2", &other));
    address_limit_leave(&limit, one);
    assert_true(enter(&limit, "192.0.2.1", &one));
    assert_false(enter(&limit, "192.0.2.1", &other));
}

static void check_networks(void **state)
{
    struct address_limit limit = begin(1, 0, 0);
    _Atomic uint32_t place;

    (void)state;
    assert_true(enter(&limit, "2001:db8:1:2::1", &place));
    assert_false(enter(&limit, "2001:db8:1:2:ffff::2", &place));
    assert_true(enter(&limit, "2001:db8:1:3::1", &place));
}

static void check_mapped(void **state)
{
    struct address_limit limit = begin(1, 0, 0);
    union address mapped = {.v6 = {.sin6_family = AF_INET6}};
    _Atomic uint32_t place;

    (void)state;
    assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &mapped.v6.sin6_addr), 1);
    assert_true(enter(&limit, "192.0.2.1", &place));
    assert_false(address_limit_enter(&limit, &mapped, &place));
}

static void check_datagrams(void **state)
{
    struct address_limit limit = begin(1, 0, 1);
    const union address datagram = {.any = {.sa_family = ADDRESS_OF_DATAGRAMS}};
    _Atomic uint32_t one, two, other;

    (void)state;
    limit.most_datagrams = 2;
    assert_true(address_limit_enter(&limit, &datagram, &one));
    assert_true(address_limit_enter(&limit, &datagram, &two)); /* all together have no rate */
    assert_false(address_limit_enter(&limit, &datagram, &other));
    assert_true(enter(&limit, "192.0.2.1", &other));
    address_limit_leave(&limit, one);
    assert_true(address_limit_enter(&limit, &datagram, &one));
    limit.most_datagrams = 0;
    assert_true(address_limit_enter(&limit, &datagram, &other));
    assert_int_equal(other, 0);
}

static void check_loopback(void **state)
{
    struct address_limit free = begin(1, 0, 0), counted = begin(9, 1, 0);
    _Atomic uint32_t place;

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_true(enter(&free, "127.0.0.1", &place));
        assert_int_equal(place, 0);
        assert_true(enter(&free, "::1", &place));
    }
    assert_true(enter(&counted, "127.0.0.1", &place));
    assert_false(enter(&counted, "127.0.0.1", &place));
    assert_true(enter(&counted, "127.0.0.2", &place));
}

/* A process that dies may be counted off twice: no count gets below none. */
static void check_twice(void **state)
{
    struct address_limit limit = begin(1, 0, 0);
    _Atomic uint32_t place, other;

    (void)state;
    assert_true(enter(&limit, "192.0.2.1", &place));
    address_limit_leave(&limit, place);
    address_limit_leave(&limit, place);
    assert_true(enter(&limit, "192.0.2.1", &place));
    assert_false(enter(&limit, "192.0.2.1", &other));
}

/* However many addresses come and go, there is a place for the next one. */
static void check_many(void **state)
{
    struct address_limit limit = begin(1, 0, 0);
    union address address = address_of("10.0.0.0");
    _Atomic uint32_t place;

    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        address.v4.sin_addr.s_addr = htonl(0x0a000000 + i);
        assert_true(address_limit_enter(&limit, &address, &place));
        assert_int_not_equal(place, 0);
        address_limit_leave(&limit, place);
    }
}

/* The rate counts within one second; on a slow machine, a few more may pass. */
static void check_rate(void **state)
{
    struct address_limit limit = begin(INT_MAX, INT_MAX, 1);
    _Atomic uint32_t place;
    int entered = 0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        entered += enter(&limit, "192.0.2.1", &place);
    assert_in_range(entered, 1, 900);
    assert_true(enter(&limit, "192.0.2.2", &place));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_most),     cmocka_unit_test(check_networks),
        cmocka_unit_test(check_mapped),   cmocka_unit_test(check_datagrams),
        cmocka_unit_test(check_loopback), cmocka_unit_test(check_twice),
        cmocka_unit_test(check_many),     cmocka_unit_test(check_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
