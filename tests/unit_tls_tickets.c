/* Tests of tls_tickets.c: the ages of keys of session tickets. */
#include "common/net/tls_tickets.h"

#include "tests/unit.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tls_tickets *make(void)
{
    struct tls_tickets *tickets =
        mmap(NULL, sizeof *tickets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(tickets != MAP_FAILED);
    assert_true(tls_tickets_open(tickets));
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

#define START INT64_C(1000)

static const struct age_case ages[] = {
    {"at once", START, START, TICKET_FRESH},
    {"at the end of the period", START, START + TLS_TICKETS_SECONDS - 1, TICKET_FRESH},
    {"in the next period", START, START + TLS_TICKETS_SECONDS, TICKET_AGEING},
    {"at the end of the next period", START, START + 2 * TLS_TICKETS_SECONDS - 1, TICKET_AGEING},
    {"after that", START, START + 2 * TLS_TICKETS_SECONDS, TICKET_UNKNOWN},
    {"long after that", START, START + 100 * TLS_TICKETS_SECONDS, TICKET_UNKNOWN},
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

static bool dies_with_the_lock(struct tls_tickets *tickets, struct ticket_key *key)
{
    (void)key;
    lock_take(&tickets->lock);
    raise(SIGKILL);
    return true;
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

/* The keys that a dead process may have damaged are replaced. */
static void test_death(void **state)
{
    struct tls_tickets *tickets = make();
    struct ticket_key key, other;

    (void)state;
    assert_true(tls_tickets_current(tickets, START, &key));
    assert_false(in_child(dies_with_the_lock, tickets, &key));
    assert_int_equal(tls_tickets_find(tickets, key.name, START, &other), TICKET_UNKNOWN);
    assert_true(tls_tickets_current(tickets, START, &other));
    assert_false(same(&key, &other));
    assert_int_equal(tls_tickets_find(tickets, other.name, START, &key), TICKET_FRESH);
    munmap(tickets, sizeof *tickets);
}

int main(void)
{
    UNIT_TABLE(ages, test_age);
    unit_add("each key is different", test_random, NULL);
    unit_add("processes have the same keys", test_processes, NULL);
    unit_add("a process that dies with the lock leaves keys that can be used", test_death, NULL);
    return unit_run("tickets");
}
