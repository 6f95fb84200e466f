/* Locks accept: by a lock on a file, or by a mutex. */
#include "common/workers/accept_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool open_file(struct accept_lock *accept_lock)
{
    *accept_lock = (struct accept_lock){.file = memfd_create("accept_lock", MFD_CLOEXEC)};
    return accept_lock->file >= 0;
}

static bool open_mutex(struct accept_lock *accept_lock)
{
    void *memory = mmap(NULL, sizeof *accept_lock->mutex, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *accept_lock = (struct accept_lock){.file = -1, .mutex = memory};
    return memory != MAP_FAILED;
}

bool accept_lock_open(struct accept_lock *accept_lock, bool mutex)
{
    return mutex ? open_mutex(accept_lock) : open_file(accept_lock);
}

static bool lock(int file, short how)
{
    struct flock lock = {.l_type = how, .l_whence = SEEK_SET};

    while (fcntl(file, F_SETLKW, &lock) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* ---- the mutex ---- */

static void wake_one(struct accept_lock *accept_lock)
{
    syscall(SYS_futex, accept_lock->mutex, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Takes the mutex if no other worker holds it. Else it returns false, and the mutex says that
 * somebody waits; *found is what it then holds. */
static bool try_mutex(const struct accept_lock *accept_lock, uint32_t flags, uint32_t *found)
{
    uint32_t wanted;
    bool held;

    do {
        uint32_t holder = *found & FUTEX_TID_MASK;
        held = holder != 0 && holder != accept_lock->self;
        wanted = held ? *found | FUTEX_WAITERS : accept_lock->self | flags;
    } while (!atomic_compare_exchange_strong(accept_lock->mutex, found, wanted));
    *found = wanted;
    return !held;
}

/* Once it has waited, others may wait, too. */
static void take_mutex(struct accept_lock *accept_lock)
{
    uint32_t found = 0, flags = 0;

    if (accept_lock->self == 0)
        accept_lock->self = (uint32_t)getpid();
    while (!try_mutex(accept_lock, flags, &found)) {
        syscall(SYS_futex, accept_lock->mutex, FUTEX_WAIT, found, NULL, NULL, 0);
        flags = FUTEX_WAITERS;
        found = atomic_load(accept_lock->mutex);
    }
}

static void give_mutex(struct accept_lock *accept_lock)
{
    if (atomic_exchange(accept_lock->mutex, 0) & FUTEX_WAITERS)
        wake_one(accept_lock);
}

/* ---- either ---- */

bool accept_lock_take(struct accept_lock *accept_lock)
{
    if (accept_lock->file >= 0)
        return lock(accept_lock->file, F_WRLCK);
    take_mutex(accept_lock);
    return true;
}

void accept_lock_give(struct accept_lock *accept_lock)
{
    if (accept_lock->file >= 0)
        lock(accept_lock->file, F_UNLCK);
    else
        give_mutex(accept_lock);
}

/* The kernel frees a lock on a file. */
void accept_lock_bury(struct accept_lock *accept_lock, pid_t worker)
{
    uint32_t found;

    if (accept_lock->file >= 0)
        return;
    found = atomic_load(accept_lock->mutex);
    while ((found & FUTEX_TID_MASK) == (uint32_t)worker &&
           !atomic_compare_exchange_strong(accept_lock->mutex, &found, 0))
        ;
    wake_one(accept_lock);
}
