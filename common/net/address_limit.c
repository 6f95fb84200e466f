/* Counts connections by client address, in a table of fixed size without locks. */
#include "common/net/address_limit.h"

#include "common/base/clock.h"

#include <string.h>
#include <sys/random.h>

/* An address has its place in one set of the table. A table with four times as many places as
 * connections leaves hardly any set without a free place. */
#define SET_PLACES       8
#define PLACES_EACH      4
#define LEAST_SETS       128
#define COUNT_BITS       24
#define COUNT_MASK       ((UINT64_C(1) << COUNT_BITS) - 1)
#define SECOND           1000000 /* in microseconds */
#define PREFIX_BYTES     8       /* of an IPv6 address */
#define MAPPED_ADDRESSES UINT64_C(0xffff00000000)

struct address_count {
    _Atomic uint64_t word; /* the tag of the address, and how many connections it has */
    _Atomic int64_t due;   /* when its next connection would be on time, in microseconds */
};

static uint64_t sets_for(uint64_t connections)
{
    uint64_t sets = LEAST_SETS;

    while (sets * SET_PLACES < connections * PLACES_EACH)
        sets *= 2;
    return sets;
}

size_t address_limit_size(uint64_t connections)
{
    return sets_for(connections) * SET_PLACES * sizeof(struct address_count);
}

bool address_limit_open(struct address_limit *limit, uint64_t connections, void *memory)
{
    limit->sets = sets_for(connections);
    limit->counts = memory;
    return getrandom(limit->seed, sizeof limit->seed, 0) > 0;
}

/* Returns how many connections the address may have; 0 if they are not counted. The key is the same
 * for all addresses that count as one. */
static int most_of(const struct address_limit *limit, const union address *address, uint64_t *key)
{
    const struct in6_addr *v6 = &address->v6.sin6_addr;
    struct in_addr v4 = address->v4.sin_addr;
    bool mapped = address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6);

    if (mapped)
        memcpy(&v4, v6->s6_addr + 12, sizeof v4);
    if (mapped || address->any.sa_family == AF_INET) {
        *key = MAPPED_ADDRESSES | ntohl(v4.s_addr);
        return ntohl(v4.s_addr) >> 24 == 127 ? limit->most_loopback : limit->most;
    }
    *key = UINT64_MAX;
    if (address->any.sa_family == ADDRESS_OF_DATAGRAMS)
        return limit->most_datagrams;
    if (address->any.sa_family != AF_INET6)
        return 0;
    memcpy(key, v6->s6_addr, PREFIX_BYTES);
    return IN6_IS_ADDR_LOOPBACK(v6) ? limit->most_loopback : limit->most;
}

/* Clients cannot choose addresses of the same set: they do not know the seed. */
static uint64_t hash(const struct address_limit *limit, uint64_t key)
{
    uint64_t value = key ^ limit->seed[0];

    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = ((value ^ value >> 27) + limit->seed[1]) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t tag_of(uint64_t word)
{
    return word >> COUNT_BITS;
}

/* Returns the place of the address in the set: its own, or else the free one whose address came
 * longest ago; NULL if there is none. */
static struct address_count *find(struct address_count *set, uint64_t tag)
{
    struct address_count *oldest = NULL;

    for (int i = 0; i < SET_PLACES; i++) {
        uint64_t word = atomic_load(&set[i].word);
        if (tag_of(word) == tag)
            return &set[i];
        if ((word & COUNT_MASK) == 0 &&
            (oldest == NULL || atomic_load(&set[i].due) < atomic_load(&oldest->due)))
            oldest = &set[i];
    }
    return oldest;
}

/* Takes one of the connections that the address may make in a second; false if none is left. */
static bool is_on_time(const struct address_limit *limit, struct address_count *count)
{
    int64_t now = clock_now().milliseconds * 1000, due = atomic_load(&count->due), next;

    do {
        next = (due > now ? due : now) + SECOND / limit->rate;
        if (next - now > SECOND + SECOND / limit->rate / 2)
            return false;
    } while (!atomic_compare_exchange_weak(&count->due, &due, next));
    return true;
}

/* Adds a connection to the count of the address. Returns the count; NULL if the address has too
 * many connections, or if its set is full (*full). *place is set first. */
static struct address_count *add(struct address_limit *limit, uint64_t hashed, int most,
                                 _Atomic uint32_t *place, bool *full)
{
    struct address_count *set = &limit->counts[hashed % limit->sets * SET_PLACES];
    uint64_t tag = tag_of(hashed);

    for (;;) {
        struct address_count *count = find(set, tag);
        uint64_t word = count != NULL ? atomic_load(&count->word) : 0, others;
        bool new = tag_of(word) != tag;

        *full = count == NULL;
        if (*full)
            return NULL;
        if (new && (word & COUNT_MASK) != 0)
            continue; /* another address has just taken it */
        others = new ? 0 : word &COUNT_MASK;
        if (others >= (uint64_t)most)
            return NULL;
        atomic_store(place, (uint32_t)(count - limit->counts) + 1);
        if (!atomic_compare_exchange_strong(&count->word, &word, tag << COUNT_BITS | (others + 1)))
            continue;
        if (new)
            atomic_store(&count->due, 0);
        return count;
    }
}

bool address_limit_enter(struct address_limit *limit, const union address *address,
                         _Atomic uint32_t *place)
{
    struct address_count *count;
    uint64_t key;
    int most = most_of(limit, address, &key);
    bool full = false;

    atomic_store(place, 0);
    if (most == 0)
        return true;
    count = add(limit, hash(limit, key), most, place, &full);
    if (count != NULL && (limit->rate == 0 || address->any.sa_family == ADDRESS_OF_DATAGRAMS ||
                          is_on_time(limit, count)))
        return true;
    if (count != NULL)
        address_limit_leave(limit, atomic_load(place));
    atomic_store(place, 0);
    return full;
}

/* The place comes from memory that all processes write to. */
void address_limit_leave(struct address_limit *limit, uint32_t place)
{
    struct address_count *count;
    uint64_t word;

    if (place == 0 || place > limit->sets * SET_PLACES)
        return;
    count = &limit->counts[place - 1];
    word = atomic_load(&count->word);
    while ((word & COUNT_MASK) != 0 && !atomic_compare_exchange_weak(&count->word, &word, word - 1))
        ;
}
