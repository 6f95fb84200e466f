/* Tests of datagram.c: how long a response may be. */
#include "common/net/datagram.h"

#include "tests/unit.h"

#include <arpa/inet.h>

struct room_case {
    const char *name; /* the address */
    size_t request, room;
};

static const struct room_case rooms[] = {
    {"127.0.0.1", 18, DATAGRAM_RESPONSE_LIMIT},
    {"127.255.255.254", 18, DATAGRAM_RESPONSE_LIMIT},
    {"::1", 18, DATAGRAM_RESPONSE_LIMIT},
    {"128.0.0.1", 18, 54},
    {"126.255.255.255", 100, 300},
    {"192.0.2.1", 0, 0},
    {"192.0.2.1", 21835, 65505},
    {"192.0.2.1", 21836, DATAGRAM_RESPONSE_LIMIT},
    {"192.0.2.1", DATAGRAM_REQUEST_LIMIT, DATAGRAM_RESPONSE_LIMIT},
    {"::2", 18, 54},
    {"fe80::1", 18, 54},
    {"2001:db8::1", 18, 54},
};

static void check_room(void **state)
{
    const struct room_case *row = *state;
    union address address = {0};

    if (inet_pton(AF_INET, row->name, &address.v4.sin_addr) == 1)
        address.v4.sin_family = AF_INET;
    else if (inet_pton(AF_INET6, row->name, &address.v6.sin6_addr) == 1)
        address.v6.sin6_family = AF_INET6;
    assert_int_equal(datagram_room(&address, row->request), row->room);
}

int main(void)
{
    UNIT_TABLE(rooms, check_room);
    return unit_run("datagram");
}
