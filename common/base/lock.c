/* A lock that processes and threads share: a futex that names its holder. The kernel finds out that
 * a holder has died by its identifier, and needs no list of the locks that a thread holds. */
#include "common/base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool ask_kernel(struct lock *lock, int operation, const struct timespec *end)
{
    return syscall(SYS_futex, &lock->holder, operation, 0, end, NULL, 0) == 0;
}

static bool is_over(const struct timespec *end)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec);
}

/* Frees the lock if it still has that holder. */
static void take_away(struct lock *lock, uint32_t holder)
{
    uint32_t now = atomic_load(&lock->holder);

    if ((now & FUTEX_TID_MASK) == (holder & FUTEX_TID_MASK))
        atomic_compare_exchange_strong(&lock->holder, &now, 0);
}

/* NULL: there is no end. */
static bool take(struct lock *lock, const struct timespec *end)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    bool consistent = true;

    for (;;) {
        uint32_t holder = atomic_load(&lock->holder);
        if (ask_kernel(lock, FUTEX_LOCK_PI, end))
            return !(atomic_load(&lock->holder) & FUTEX_OWNER_DIED) && consistent;
        bool died = errno == ESRCH || errno == EDEADLK || errno == EPERM;
        if (end != NULL && is_over(end)) {
            take_away(lock, holder);
            return false;
        }
        if (died) {
            /* Perhaps this thread, or one of the kernel, has the holder's identifier now. */
            consistent = false;
            take_away(lock, holder);
        } else {
            /* The lock was taken away from somebody for whom others still wait. */
            nanosleep(&pause, NULL);
        }
    }
}

bool lock_take(struct lock *lock)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end); /* the kernel compares with this clock */
    end.tv_sec += LOCK_SECONDS;
    return take(lock, &end);
}

/* The kernel refuses if the caller does not hold the lock. */
void lock_give(struct lock *lock)
{
    atomic_fetch_or_explicit(&lock->holder, 0, memory_order_release); /* the data is written */
    ask_kernel(lock, FUTEX_UNLOCK_PI, NULL);
}

/* Replaces one holder by another if nobody waits. */
static bool replace(struct lock *lock, pid_t from, pid_t to)
{
    uint32_t holder = (uint32_t)from;

    return atomic_compare_exchange_strong(&lock->holder, &holder, (uint32_t)to);
}

bool lock_wait(struct lock *lock, pid_t self)
{
    return replace(lock, 0, self) || take(lock, NULL);
}

void lock_end(struct lock *lock, pid_t self)
{
    if (!replace(lock, self, 0))
        lock_give(lock);
}

bool lock_open(struct lock *lock)
{
    atomic_init(&lock->holder, 0);
    if (!ask_kernel(lock, FUTEX_LOCK_PI, NULL))
        return false;
    lock_give(lock);
    return true;
}
