/* Tests of origin_pool.c: which connection is taken out, which are closed, and when. */
#include "common/net/transport_plain.h"
#include "common/proxy/origin_pool.h"

#include "tests/unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE 1000
#define NOW  INT64_C(1000000)
#define MANY 8

static struct origin_pool *pool;
static int ends[MANY]; /* of the origin */
static unsigned reloads;

static union address address_of(uint16_t port)
{
    return (union address){.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
}

static void begin(int each, int all, bool lasts)
{
    const struct origin_pool_limits limits = {each, all, IDLE, lasts};

    pool = origin_pool_open(&limits);
    assert_non_null(pool);
}

/* Puts in a new connection to the origin at that port. */
static void put(int number, uint16_t port, int64_t now)
{
    const union address address = address_of(port);
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ends[number] = pair[1];
    origin_pool_put(
        pool, &address, now,
        &(struct transport){.kind = &transport_plain, .socket = pair[0], .nonblocking = true});
}

/* Returns true if the connection of that number is closed at the proxy's side. */
static bool is_closed(int number)
{
    char byte;

    return recv(ends[number], &byte, 1, MSG_DONTWAIT) == 0;
}

/* Takes out a connection to the origin at that port. Returns its number; -1: none. */
static int take(uint16_t port, int64_t now)
{
    const union address address = address_of(port);
    struct transport transport;
    size_t count;
    char byte;

    if (!origin_pool_take(pool, &address, now, reloads, &transport))
        return -1;
    assert_true(transport.kind->write(&transport, TEXT("x"), false, &count) == TRANSFER_DONE);
    for (int i = 0; i < MANY; i++)
        if (recv(ends[i], &byte, 1, MSG_DONTWAIT) == 1) {
            close(transport.socket);
            return i;
        }
    return -1;
}

static void check_order(void **state)
{
    (void)state;
    begin(4, 4, true);
    assert_int_equal(take(1, NOW), -1);
    put(0, 1, NOW);
    put(1, 2, NOW);
    put(2, 1, NOW);
    assert_int_equal(take(1, NOW), 2); /* the one that was used last */
    assert_int_equal(take(1, NOW), 0);
    assert_int_equal(take(1, NOW), -1); /* that to another origin is not taken */
    assert_int_equal(take(2, NOW), 1);
    origin_pool_close(pool);
}

static void check_limits(void **state)
{
    (void)state;
    begin(2, 3, true);
    for (int i = 0; i < 3; i++)
        put(i, 1, NOW);
    assert_true(is_closed(0)); /* two to each origin */
    assert_false(is_closed(1));
    put(3, 2, NOW);
    put(4, 3, NOW);
    assert_true(is_closed(1)); /* three in all */
    assert_int_equal(take(1, NOW), 2);
    origin_pool_close(pool);
    assert_true(is_closed(3));
    assert_true(is_closed(4));
}

static void check_unusable(void **state)
{
    (void)state;
    begin(4, 4, true);
    put(0, 1, NOW);
    put(1, 1, NOW);
    put(2, 1, NOW);
    assert_int_equal(write(ends[2], "HTTP/1.1 200 OK\r\n\r\n", 19), 19);
    shutdown(ends[1], SHUT_WR);
    assert_int_equal(take(1, NOW), 0); /* neither what has spoken nor what has ended */
    assert_true(is_closed(1));
    origin_pool_close(pool);
}

static void check_time(void **state)
{
    (void)state;
    begin(4, 4, true);
    assert_int_equal(origin_pool_review(pool, NOW, false), -1);
    assert_int_equal(origin_pool_review(pool, NOW, true), IDLE);
    put(0, 1, NOW);
    put(1, 1, NOW + 10);
    assert_int_equal(origin_pool_review(pool, NOW + 100, false), IDLE - 100);
    assert_false(is_closed(0));
    assert_int_equal(origin_pool_review(pool, NOW + IDLE, false), 10);
    assert_true(is_closed(0));
    assert_int_equal(take(1, NOW + 10 + IDLE), -1); /* its time is over */
    assert_true(is_closed(1));
    put(2, 1, NOW);
    origin_pool_empty(pool);
    assert_true(is_closed(2));
    origin_pool_close(pool);
}

static void check_reload(void **state)
{
    (void)state;
    begin(4, 4, true);
    put(0, 1, NOW);
    put(1, 2, NOW);
    assert_int_equal(take(1, NOW), 0);
    put(2, 1, NOW);
    reloads++;
    assert_int_equal(take(1, NOW), -1);
    assert_true(is_closed(1));
    assert_true(is_closed(2));
    put(3, 1, NOW);
    assert_int_equal(take(1, NOW), 3);
    origin_pool_close(pool);
    reloads = 0;
}

static void check_use(void **state)
{
    (void)state;
    begin(0, 4, true);
    assert_false(origin_pool_is_useful(pool, true));
    origin_pool_close(pool);
    begin(4, 4, false); /* a process for one client */
    assert_false(origin_pool_is_useful(pool, false));
    assert_true(origin_pool_is_useful(pool, true));
    assert_int_equal(origin_pool_review(pool, NOW, true), -1);
    origin_pool_close(pool);
}

int main(void)
{
    unit_add("the connection that was used last is taken first", check_order, NULL);
    unit_add("limits: the oldest connection makes room", check_limits, NULL);
    unit_add("connections that have ended or spoken are not used", check_unusable, NULL);
    unit_add("idle connections end in time", check_time, NULL);
    unit_add("SIGHUP ends connections", check_reload, NULL);
    unit_add("where connections are worth keeping", check_use, NULL);
    return unit_run("origin_pool");
}
