/* Tests of tls_tickets.c: the ages of keys of session tickets. */
#include "common/net/tls_tickets.h"

#include "tests/unit.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tls_tickets *make(void)
{
    struct tls_tickets *tickets =
        mmap(NULL, sizeof *tickets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(tickets != MAP_FAILED);
    return tickets;
}

static bool same(const struct ticket_key *a, const struct ticket_key *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

struct age_case {
    const char *name;
    int64_t made, used;
    enum ticket_age age;
};

/* The begin of a period. */
#define START (INT64_C(5) * TLS_TICKETS_SECONDS)

static const struct age_case ages[] = {
    {"at once", START, START, TICKET_FRESH},
    {"at the end of the period", START, START + TLS_TICKETS_SECONDS - 1, TICKET_FRESH},
    {"in the next period", START, START + TLS_TICKETS_SECONDS, TICKET_AGEING},
    {"at the end of the next period", START, START + 2 * TLS_TICKETS_SECONDS - 1, TICKET_AGEING},
    {"after that", START, START + 2 * TLS_TICKETS_SECONDS, TICKET_UNKNOWN},
    {"long after that", START, START + 100 * TLS_TICKETS_SECONDS, TICKET_UNKNOWN},
    {"in the first period of the clock", 0, TLS_TICKETS_SECONDS - 1, TICKET_FRESH},
    {"from the end of a period", START + TLS_TICKETS_SECONDS - 1, START + TLS_TICKETS_SECONDS,
     TICKET_AGEING},
    {"from a later period", START + TLS_TICKETS_SECONDS, START + TLS_TICKETS_SECONDS + 1,
     TICKET_FRESH},
};

static void test_age(void **state)
{
    const struct age_case *row = *state;
    struct tls_tickets *tickets = make();
    struct ticket_key first, key, found;

    if (row->made >= START)
        assert_true(tls_tickets_current(tickets, START, &first));
    assert_true(tls_tickets_current(tickets, row->made, &key));
    assert_int_equal(tls_tickets_find(tickets, key.name, row->used, &found), row->age);
    if (row->age != TICKET_UNKNOWN)
        assert_true(same(&key, &found));
    munmap(tickets, sizeof *tickets);
}

static void test_random(void **state)
{
    struct tls_tickets *one = make(), *other = make();
    struct ticket_key keys[4], found;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(tls_tickets_current(one, START + i * TLS_TICKETS_SECONDS, &keys[i]));
    assert_true(tls_tickets_current(other, START, &keys[3]));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            assert_memory_not_equal(keys[i].name, keys[j].name, sizeof keys[i].name);
            assert_memory_not_equal(keys[i].cipher, keys[j].cipher, sizeof keys[i].cipher);
            assert_memory_not_equal(keys[i].digest, keys[j].digest, sizeof keys[i].digest);
        }
    assert_int_equal(tls_tickets_find(one, keys[3].name, START, &found), TICKET_UNKNOWN);
    memset(keys[3].name, 0, sizeof keys[3].name);
    assert_int_equal(tls_tickets_find(one, keys[3].name, START, &found), TICKET_UNKNOWN);
    munmap(one, sizeof *one);
    munmap(other, sizeof *other);
}

/* Runs the function in a child process, and returns its result. */
static bool in_child(bool (*work)(struct tls_tickets *, struct ticket_key *),
                     struct tls_tickets *tickets, struct ticket_key *key)
{
    int status;
    pid_t child = fork();

    if (child == 0)
        _exit(!work(tickets, key));
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool finds(struct tls_tickets *tickets, struct ticket_key *key)
{
    struct ticket_key found;

    return tls_tickets_find(tickets, key->name, START, &found) == TICKET_FRESH && same(key, &found);
}

static bool renews(struct tls_tickets *tickets, struct ticket_key *key)
{
    struct ticket_key now;

    return tls_tickets_current(tickets, START + TLS_TICKETS_SECONDS, &now) && !same(key, &now);
}

static void test_processes(void **state)
{
    struct tls_tickets *tickets = make();
    struct ticket_key key, other;

    (void)state;
    assert_true(tls_tickets_current(tickets, START, &key));
    assert_true(in_child(finds, tickets, &key));
    assert_true(in_child(renews, tickets, &key));
    assert_int_equal(tls_tickets_find(tickets, key.name, START + TLS_TICKETS_SECONDS, &other),
                     TICKET_AGEING);
    munmap(tickets, sizeof *tickets);
}

/* While the first process of a period writes its key, as after the death of that process, each
 * process has keys of its own, whose tickets are unknown: nobody waits. The next period has a key.
 */
static void test_writing(void **state)
{
    struct tls_tickets *tickets = make();
    struct ticket_key first, key, other;
    int written = 0;

    (void)state;
    assert_true(tls_tickets_current(tickets, START, &first));
    for (int i = 0; i < 2; i++)
        if (memcmp(&tickets->slots[i].key, &first, sizeof first) == 0) {
            tickets->slots[i].period |= UINT64_C(1) << 63;
            written++;
        }
    assert_int_equal(written, 1);
    assert_true(tls_tickets_current(tickets, START, &key));
    assert_true(tls_tickets_current(tickets, START, &other));
    assert_false(same(&key, &other));
    assert_int_equal(tls_tickets_find(tickets, key.name, START, &other), TICKET_UNKNOWN);
    assert_int_equal(tls_tickets_find(tickets, first.name, START, &other), TICKET_UNKNOWN);
    assert_true(tls_tickets_current(tickets, START + TLS_TICKETS_SECONDS, &key));
    assert_int_equal(tls_tickets_find(tickets, key.name, START + TLS_TICKETS_SECONDS, &other),
                     TICKET_FRESH);
    munmap(tickets, sizeof *tickets);
}

/* Whatever a worker writes, a process gets a key, and soon. */
static void test_nonsense(void **state)
{
    static const uint64_t periods[] = {0, 1, 6, 7, 8, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    const int count = sizeof periods / sizeof periods[0];
    struct tls_tickets *tickets = make();
    struct ticket_key key, found;

    (void)state;
    for (int i = 0; i < count * count; i++) {
        tickets->slots[0].period = periods[i / count];
        tickets->slots[1].period = periods[i % count];
        memset(&tickets->slots[0].key, 0, sizeof key);
        memset(&tickets->slots[1].key, 0, sizeof key);
        assert_true(tls_tickets_current(tickets, START, &key));
        (void)tls_tickets_find(tickets, key.name, START, &found);
    }
    munmap(tickets, sizeof *tickets);
}

/* The zeros of an empty slot are no key: with it anybody could make tickets. */
static void test_zeros(void **state)
{
    static const unsigned char zeros[TLS_TICKETS_NAME_SIZE];
    static const int64_t times[] = {0, 1, TLS_TICKETS_SECONDS - 1, TLS_TICKETS_SECONDS, START};
    struct ticket_key key;

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct tls_tickets *tickets = make();
        for (int j = 0; j < 3; j++) {
            assert_int_equal(tls_tickets_find(tickets, zeros, times[i], &key), TICKET_UNKNOWN);
            assert_true(tls_tickets_current(tickets, times[i] + j, &key));
            assert_memory_not_equal(key.name, zeros, sizeof zeros);
        }
        munmap(tickets, sizeof *tickets);
    }
}

/* A process that comes late with the key of a period takes nothing from the next ones. */
static void test_late(void **state)
{
    struct tls_tickets *tickets = make();
    struct ticket_key key, late, found;

    (void)state;
    for (int i = 1; i <= 2; i++) {
        int64_t now = START + i * TLS_TICKETS_SECONDS;
        assert_true(tls_tickets_current(tickets, now, &key));
        assert_true(tls_tickets_current(tickets, START, &late));
        assert_int_equal(tls_tickets_find(tickets, key.name, now, &found), TICKET_FRESH);
    }
    munmap(tickets, sizeof *tickets);
}

/* No key outlives the period after its own, once there is a newer one. */
static void test_forgets(void **state)
{
    static const int pauses[] = {2, 3, 4, 5};

    (void)state;
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        struct tls_tickets *tickets = make();
        struct ticket_key old[2], key;
        int64_t later = START + (pauses[i] + 1) * TLS_TICKETS_SECONDS;
        assert_true(tls_tickets_current(tickets, START, &old[0]));
        assert_true(tls_tickets_current(tickets, START + TLS_TICKETS_SECONDS, &old[1]));
        assert_true(tls_tickets_current(tickets, later, &key));
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++)
                assert_false(same(&tickets->slots[k].key, &old[j]));
        munmap(tickets, sizeof *tickets);
    }
}

int main(void)
{
    UNIT_TABLE(ages, test_age);
    unit_add("each key is different", test_random, NULL);
    unit_add("processes have the same keys", test_processes, NULL);
    unit_add("while a key is written, nobody waits", test_writing, NULL);
    unit_add("nonsense in the memory", test_nonsense, NULL);
    unit_add("zeros are no key", test_zeros, NULL);
    unit_add("a process comes late", test_late, NULL);
    unit_add("old keys are gone", test_forgets, NULL);
    return unit_run("tickets");
}
