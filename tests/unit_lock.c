/* Tests of lock.c: it excludes, and survives its holder and nonsense in its memory. */
#include "common/base/lock.h"

#include "tests/unit.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define TAKERS 4
#define TURNS  2000

struct shared {
    struct lock lock;
    unsigned long turns;      /* by the holder */
    _Atomic int good, others; /* takes that found the data consistent, and not */
};

static struct shared *make(void)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(shared != MAP_FAILED);
    assert_true(lock_open(&shared->lock));
    return shared;
}

static void *take_turns(void *argument)
{
    struct shared *shared = argument;
    pid_t self = gettid();

    for (int i = 0; i < TURNS; i++) {
        bool good = lock_take(&shared->lock, self);
        (*(good ? &shared->good : &shared->others))++;
        shared->turns++;
        lock_give(&shared->lock, self);
    }
    return NULL;
}

static pid_t start(void *(*work)(void *), struct shared *shared)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        alarm(300);
        work(shared);
        _exit(0);
    }
    return child;
}

static void check_turns(struct shared *shared)
{
    assert_int_equal(shared->turns, TAKERS * TURNS);
    assert_int_equal(shared->good, TAKERS * TURNS);
    assert_int_equal(shared->others, 0);
    munmap(shared, sizeof *shared);
}

static void test_processes(void **state)
{
    struct shared *shared = make();
    pid_t children[TAKERS];

    (void)state;
    for (int i = 0; i < TAKERS; i++)
        children[i] = start(take_turns, shared);
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(unit_end_of(children[i]), 0);
    check_turns(shared);
}

static void test_threads(void **state)
{
    struct shared *shared = make();
    pthread_t threads[TAKERS];

    (void)state;
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, shared), 0);
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    check_turns(shared);
}

/* Requires that the lock is as good as new. */
static void check_free(struct shared *shared)
{
    assert_true(lock_take(&shared->lock, getpid()));
    assert_int_equal(shared->lock.holder, getpid());
    lock_give(&shared->lock, getpid());
    assert_int_equal(shared->lock.holder, 0);
    munmap(shared, sizeof *shared);
}

static void *hold_for_ever(void *argument)
{
    struct shared *shared = argument;

    lock_take(&shared->lock, getpid());
    for (;;)
        pause();
    return NULL;
}

static void *count_take(void *argument)
{
    struct shared *shared = argument;

    (*(lock_take(&shared->lock, getpid()) ? &shared->good : &shared->others))++;
    lock_give(&shared->lock, getpid());
    return NULL;
}

static void wait_for_holder(const struct shared *shared, pid_t holder, unsigned flags)
{
    while ((shared->lock.holder & (FUTEX_TID_MASK | FUTEX_WAITERS)) != ((unsigned)holder | flags))
        usleep(1000);
}

static void test_death(void **state)
{
    struct shared *shared = make();
    pid_t holder = start(hold_for_ever, shared);

    (void)state;
    wait_for_holder(shared, holder, 0);
    kill(holder, SIGKILL);
    unit_end_of(holder);
    assert_false(lock_take(&shared->lock, getpid()));
    assert_int_equal(shared->lock.holder & FUTEX_TID_MASK, getpid());
    lock_give(&shared->lock, getpid());
    check_free(shared);
}

/* At least one of those that wait learns that the holder has died. */
static void test_death_before_others(void **state)
{
    struct shared *shared = make();
    pid_t holder = start(hold_for_ever, shared), waiting[TAKERS];

    (void)state;
    wait_for_holder(shared, holder, 0);
    for (int i = 0; i < TAKERS; i++)
        waiting[i] = start(count_take, shared);
    wait_for_holder(shared, holder, FUTEX_WAITERS);
    kill(holder, SIGKILL);
    unit_end_of(holder);
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(unit_end_of(waiting[i]), 0);
    assert_int_equal(shared->good + shared->others, TAKERS);
    assert_in_range(shared->others, 1, TAKERS);
    check_free(shared);
}

/* ---- what a hostile process may write ---- */

struct nonsense_case {
    const char *name;
    uint32_t holder;
};

/* No process has the highest identifier. */
static const struct nonsense_case nonsense[] = {
    {"an identifier that nobody has", FUTEX_TID_MASK},
    {"that of a thread of the kernel", 2},
    {"waiters of a holder that nobody is", FUTEX_TID_MASK | FUTEX_WAITERS},
    {"waiters of nobody", FUTEX_WAITERS},
    {"a dead holder without a name", FUTEX_OWNER_DIED},
    {"a dead holder and waiters", FUTEX_OWNER_DIED | FUTEX_WAITERS | FUTEX_TID_MASK},
};

static void test_nonsense(void **state)
{
    const struct nonsense_case *row = *state;
    struct shared *shared;

    if (getpgid((pid_t)row->holder) > 0)
        UNIT_SKIP("a process has this identifier");
    shared = make();
    shared->lock.holder = row->holder;
    lock_take(&shared->lock, getpid());
    assert_int_equal(shared->lock.holder & FUTEX_TID_MASK, getpid());
    lock_give(&shared->lock, getpid());
    check_free(shared);
}

/* The lock names this thread: a dead holder may have had the same identifier. */
static void test_own_name(void **state)
{
    struct shared *shared = make();

    (void)state;
    shared->lock.holder = (uint32_t)getpid();
    assert_false(lock_take(&shared->lock, getpid()));
    lock_give(&shared->lock, getpid());
    check_free(shared);
}

/* A process that does not know that the lock names it. The lock is free when the process ends. */
static void *know_nothing(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}

static void test_false_holder(void **state)
{
    struct shared *shared = make();
    pid_t holder = start(know_nothing, shared), waiting[TAKERS];

    (void)state;
    shared->lock.holder = (uint32_t)holder;
    for (int i = 0; i < TAKERS; i++)
        waiting[i] = start(count_take, shared);
    wait_for_holder(shared, holder, FUTEX_WAITERS);
    assert_int_equal(shared->good + shared->others, 0);
    kill(holder, SIGKILL);
    unit_end_of(holder);
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(unit_end_of(waiting[i]), 0);
    assert_int_equal(shared->good + shared->others, TAKERS);
    assert_in_range(shared->others, 1, TAKERS);
    check_free(shared);
}

/* A process that does not hold the lock cannot give it back. */
static void test_false_give(void **state)
{
    struct shared *shared = make();
    pid_t holder = start(hold_for_ever, shared);

    (void)state;
    wait_for_holder(shared, holder, 0);
    lock_give(&shared->lock, getpid());
    assert_int_equal(shared->lock.holder & FUTEX_TID_MASK, holder);
    kill(holder, SIGKILL);
    unit_end_of(holder);
    assert_false(lock_take(&shared->lock, getpid()));
    lock_give(&shared->lock, getpid());
    check_free(shared);
}

int main(void)
{
    unit_add("processes take turns", test_processes, NULL);
    unit_add("threads take turns", test_threads, NULL);
    unit_add("a holder dies", test_death, NULL);
    unit_add("a holder dies while others wait", test_death_before_others, NULL);
    UNIT_TABLE(nonsense, test_nonsense);
    unit_add("the lock names the taker", test_own_name, NULL);
    unit_add("the lock names a process that does not hold it", test_false_holder, NULL);
    unit_add("a process gives what it does not hold", test_false_give, NULL);
    return unit_run("lock");
}
