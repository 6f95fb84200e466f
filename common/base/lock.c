/* A lock that processes and threads share: a futex that names its holder. The kernel finds out that
 * a holder has died by its identifier, and needs no list of the locks that a thread holds. */
#include "common/base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool ask_kernel(struct lock *lock, int operation)
{
    return syscall(SYS_futex, &lock->holder, operation, 0, NULL, NULL, 0) == 0;
}

/* Replaces one holder by another if nobody waits. */
static bool replace(struct lock *lock, pid_t from, pid_t to)
{
    uint32_t holder = (uint32_t)from;

    return atomic_compare_exchange_strong(&lock->holder, &holder, (uint32_t)to);
}

/* Frees the lock if it still has that holder. */
static void take_away(struct lock *lock, uint32_t holder)
{
    uint32_t now = atomic_load(&lock->holder);

    if ((now & FUTEX_TID_MASK) == (holder & FUTEX_TID_MASK))
        atomic_compare_exchange_strong(&lock->holder, &now, 0);
}

static bool wait_for(struct lock *lock)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    bool consistent = true;

    for (;;) {
        uint32_t holder = atomic_load(&lock->holder);
        if (ask_kernel(lock, FUTEX_LOCK_PI))
            return !(atomic_load(&lock->holder) & FUTEX_OWNER_DIED) && consistent;
        if (errno == ESRCH || errno == EDEADLK || errno == EPERM) {
            /* Perhaps this thread, or one of the kernel, has the dead holder's identifier now. */
            consistent = false;
            take_away(lock, holder);
        } else {
            /* The lock was taken away from somebody for whom others still wait. */
            nanosleep(&pause, NULL);
        }
    }
}

bool lock_take(struct lock *lock, pid_t self)
{
    return replace(lock, 0, self) || wait_for(lock);
}

/* The kernel refuses if the caller does not hold the lock. */
void lock_give(struct lock *lock, pid_t self)
{
    if (replace(lock, self, 0))
        return;
    atomic_fetch_or_explicit(&lock->holder, 0, memory_order_release); /* the data is written */
    ask_kernel(lock, FUTEX_UNLOCK_PI);
}

bool lock_open(struct lock *lock)
{
    atomic_init(&lock->holder, 0);
    return ask_kernel(lock, FUTEX_LOCK_PI) && ask_kernel(lock, FUTEX_UNLOCK_PI);
}
