/* Tests of accept_lock.c: each kind excludes, and survives the death of whoever holds it or waits.
 */
#include "common/workers/accept_lock.h"

#include "tests/unit.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define TAKERS 4
#define TURNS  200
#define DEATHS 200

static const bool is_file = false, is_mutex = true;

static struct shared {
    unsigned long turns;     /* by the holder */
    _Atomic uint32_t holder; /* of the lock, as processes say */
    _Atomic int begun;
} * shared;

static struct accept_lock lock;

/* A case that hangs fails. */
static void open_lock(const bool *mutex)
{
    alarm(1200);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    assert_true(accept_lock_open(&lock, *mutex));
}

/* Takes the lock for the last time: processes that were made before do not know that this one has.
 */
static void close_lock(void)
{
    assert_true(accept_lock_take(&lock));
    accept_lock_give(&lock);
    if (lock.file >= 0)
        close(lock.file);
    else
        assert_int_equal(*lock.mutex, 0);
    munmap(shared, sizeof *shared);
    alarm(0);
}

/* Another process that had the lock as well would name itself meanwhile. */
static void take_turn(void)
{
    uint32_t self = (uint32_t)getpid();

    if (!accept_lock_take(&lock))
        _exit(1);
    shared->holder = self;
    sched_yield();
    if (shared->holder != self)
        _exit(2);
    shared->turns++;
    accept_lock_give(&lock);
}

static void take_turns(void)
{
    shared->begun++;
    while (shared->begun < TAKERS)
        sched_yield();
    for (int i = 0; i < TURNS; i++)
        take_turn();
}

static void hold_for_ever(void)
{
    if (!accept_lock_take(&lock))
        _exit(1);
    shared->holder = (uint32_t)getpid();
    for (;;)
        pause();
}

static void take_once(void)
{
    shared->begun++;
    take_turn();
}

static void take_for_ever(void)
{
    for (;; shared->begun = 1)
        if (accept_lock_take(&lock))
            accept_lock_give(&lock);
}

static pid_t start(void (*work)(void))
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        alarm(1200);
        work();
        _exit(0);
    }
    return child;
}

static void kill_one(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(unit_end_of(child), SIGKILL);
    accept_lock_bury(&lock, child);
}

static void test_turns(void **state)
{
    pid_t children[TAKERS];

    open_lock(*state);
    for (int i = 0; i < TAKERS; i++)
        children[i] = start(take_turns);
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(unit_end_of(children[i]), 0);
    assert_int_equal(shared->turns, TAKERS * TURNS);
    close_lock();
}

/* A process that waits for the lock sleeps: it has nothing else to sleep for. One that has ended
 * has not waited. */
static void wait_until_asleep(pid_t child)
{
    char path[64], state = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    while (state != 'S' && state != 'Z') {
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
        fclose(file);
        usleep(1000);
    }
}

/* The holder dies, and so does one of those that wait. */
static void test_deaths(void **state)
{
    pid_t holder, waiting[TAKERS];

    open_lock(*state);
    holder = start(hold_for_ever);
    while (shared->holder != (uint32_t)holder)
        usleep(1000);
    for (int i = 0; i < TAKERS; i++)
        waiting[i] = start(take_once);
    while (shared->begun < TAKERS)
        usleep(1000);
    for (int i = 0; i < TAKERS; i++)
        wait_until_asleep(waiting[i]);
    kill_one(waiting[0]);
    assert_int_equal(shared->turns, 0);
    kill_one(holder);
    for (int i = 1; i < TAKERS; i++)
        assert_int_equal(unit_end_of(waiting[i]), 0);
    assert_int_equal(shared->turns, TAKERS - 1);
    close_lock();
}

/* Wherever a process dies between taking and giving, the others go on. */
static void test_many_deaths(void **state)
{
    open_lock(*state);
    for (int i = 0; i < DEATHS; i++) {
        pid_t dies = start(take_for_ever), other = start(take_once);
        while (shared->begun == 0)
            usleep(100);
        usleep((unsigned)(i * 13 % 500));
        kill_one(dies);
        assert_int_equal(unit_end_of(other), 0);
        shared->begun = 0;
    }
    assert_int_equal(shared->turns, DEATHS);
    close_lock();
}

/* A word without an identifier is a free mutex, and so is one that names the taker. */
static void test_word(void **state)
{
    const uint32_t words[] = {FUTEX_WAITERS, FUTEX_OWNER_DIED, (uint32_t)getpid(),
                              (uint32_t)getpid() | FUTEX_WAITERS};

    (void)state;
    open_lock(&is_mutex);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        *lock.mutex = words[i];
        assert_true(accept_lock_take(&lock));
        assert_int_equal(*lock.mutex & FUTEX_TID_MASK, getpid());
        accept_lock_give(&lock);
        assert_int_equal(*lock.mutex, 0);
    }
    close_lock();
}

int main(void)
{
    unit_add("file: processes take turns", test_turns, &is_file);
    unit_add("mutex: processes take turns", test_turns, &is_mutex);
    unit_add("file: the holder dies, and one that waits", test_deaths, &is_file);
    unit_add("mutex: the holder dies, and one that waits", test_deaths, &is_mutex);
    unit_add("file: deaths at any moment", test_many_deaths, &is_file);
    unit_add("mutex: deaths at any moment", test_many_deaths, &is_mutex);
    unit_add("mutex: words that name nobody else", test_word, NULL);
    return unit_run("accept lock");
}
