/* Keeps idle connections to origins, so that later requests need not connect. */
#include "common/proxy/origin_pool.h"

#include "common/base/lock.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct idle_connection {
    union address address;
    struct transport transport;
    int64_t until; /* in monotonic milliseconds */
};

/* Mapped, not allocated: a child process inherits it empty. The connections lie in the order in
 * which they were put in. */
struct origin_pool {
    struct origin_pool_limits limits;
    struct lock lock;
    _Atomic int count;
    _Atomic unsigned reloads; /* their count when a connection was last asked for */
    struct idle_connection idle[ORIGIN_POOL_LIMIT];
};

struct origin_pool *origin_pool_open(const struct origin_pool_limits *limits)
{
    struct origin_pool *pool =
        mmap(NULL, sizeof *pool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pool == MAP_FAILED)
        return NULL;
    pool->limits = *limits;
    if (pool->limits.all > ORIGIN_POOL_LIMIT)
        pool->limits.all = ORIGIN_POOL_LIMIT;
    if (lock_open(&pool->lock))
        return pool;
    munmap(pool, sizeof *pool);
    return NULL;
}

void origin_pool_close(struct origin_pool *pool)
{
    origin_pool_empty(pool);
    munmap(pool, sizeof *pool);
}

bool origin_pool_is_useful(const struct origin_pool *pool, bool client_stays)
{
    return pool->limits.all > 0 && pool->limits.each > 0 && (pool->limits.lasts || client_stays);
}

/* A process that shares this memory may have died with the lock. Its connections are lost. */
static void take_lock(struct origin_pool *pool)
{
    if (!lock_take(&pool->lock, gettid()))
        pool->count = 0;
}

/* Removes the connection of that number, and copies it. */
static void extract(struct origin_pool *pool, int number, struct idle_connection *connection)
{
    int count = pool->count - 1;

    *connection = pool->idle[number];
    memmove(&pool->idle[number], &pool->idle[number + 1],
            (size_t)(count - number) * sizeof *pool->idle);
    pool->count = count;
}

static void close_one(struct idle_connection *connection)
{
    connection->transport.kind->close(&connection->transport);
}

/* ---- taking one out ---- */

static bool find_last(struct origin_pool *pool, const union address *address,
                      struct idle_connection *connection)
{
    int number;

    take_lock(pool);
    number = pool->count - 1;
    while (number >= 0 && !address_same(&pool->idle[number].address, address))
        number--;
    if (number >= 0)
        extract(pool, number, connection);
    lock_give(&pool->lock, gettid());
    return number >= 0;
}

/* An origin has nothing to say before it is asked: what it has sent would be taken for the response
 * to the next request. */
static bool is_silent(struct transport *transport)
{
    char byte;
    size_t count;

    return transport->kind->read(transport, &byte, 1, &count) == TRANSFER_READ;
}

bool origin_pool_take(struct origin_pool *pool, const union address *address, int64_t now,
                      unsigned reloads, struct transport *transport)
{
    struct idle_connection connection;

    if (pool->reloads != reloads && atomic_exchange(&pool->reloads, reloads) != reloads)
        origin_pool_empty(pool);
    while (pool->count > 0 && find_last(pool, address, &connection)) {
        if (now < connection.until && is_silent(&connection.transport)) {
            *transport = connection.transport;
            return true;
        }
        close_one(&connection);
    }
    return false;
}

/* ---- putting one in ---- */

/* Returns the number of the connection that must make room; -1 if there is room. */
static int surplus(const struct origin_pool *pool, const union address *address)
{
    int first = -1, same = 0;

    for (int i = pool->count - 1; i >= 0; i--)
        if (address_same(&pool->idle[i].address, address)) {
            first = i;
            same++;
        }
    if (same >= pool->limits.each)
        return first;
    return pool->count >= pool->limits.all ? 0 : -1;
}

void origin_pool_put(struct origin_pool *pool, const union address *address, int64_t now,
                     const struct transport *transport)
{
    struct idle_connection old;
    int number;

    take_lock(pool);
    number = surplus(pool, address);
    if (number >= 0)
        extract(pool, number, &old);
    pool->idle[pool->count] =
        (struct idle_connection){*address, *transport, now + pool->limits.idle};
    pool->count = pool->count + 1;
    lock_give(&pool->lock, gettid());
    if (number >= 0)
        close_one(&old);
}

/* ---- the end of their time ---- */

static bool take_first(struct origin_pool *pool, int64_t now, struct idle_connection *connection,
                       int *wait)
{
    bool over;

    take_lock(pool);
    over = pool->count > 0 && pool->idle[0].until <= now;
    *wait = pool->count > 0 ? (int)(pool->idle[0].until - now) : -1;
    if (over)
        extract(pool, 0, connection);
    lock_give(&pool->lock, gettid());
    return over;
}

int origin_pool_review(struct origin_pool *pool, int64_t now, bool others)
{
    struct idle_connection connection;
    int wait = -1;

    while (pool->count > 0 && take_first(pool, now, &connection, &wait))
        close_one(&connection);
    if (pool->count > 0)
        return wait;
    return others && origin_pool_is_useful(pool, false) ? pool->limits.idle : -1;
}

void origin_pool_empty(struct origin_pool *pool)
{
    origin_pool_review(pool, INT64_MAX, false);
}
