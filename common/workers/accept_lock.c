/* Locks accept: by a lock on a file, or by a mutex. */
#include "common/workers/accept_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
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

/* A worker that dies just after it was woken wakes nobody: those that wait look again. */
#define LOOK_SECONDS 1

/* Tells the kernel where this worker notes the mutex. The C library notes its robust mutexes in
 * such a list: the program has none. */
static bool begin_worker(struct accept_lock *accept_lock)
{
    struct robust_list_head *robust = &accept_lock->robust;

    *robust = (struct robust_list_head){.list.next = &robust->list};
    if (syscall(SYS_set_robust_list, robust, sizeof *robust) < 0)
        return false;
    accept_lock->self = (uint32_t)getpid();
    return true;
}

/* Takes the mutex if nobody living holds it. Else it returns false, and the mutex says that
 * somebody waits; *found is what it then holds. */
static bool try_mutex(const struct accept_lock *accept_lock, uint32_t flags, uint32_t *found)
{
    uint32_t wanted;

    do {
        bool held = (*found & FUTEX_TID_MASK) != 0;
        if (held && (*found & FUTEX_WAITERS))
            return false;
        wanted =
            held ? *found | FUTEX_WAITERS : accept_lock->self | flags | (*found & FUTEX_WAITERS);
    } while (!atomic_compare_exchange_strong(accept_lock->mutex, found, wanted));
    *found = wanted;
    return (wanted & FUTEX_TID_MASK) == accept_lock->self;
}

/* Once it has waited, others may wait, too. */
static void take_mutex(struct accept_lock *accept_lock)
{
    const struct timespec patience = {.tv_sec = LOOK_SECONDS};
    uint32_t found = 0, flags = 0;

    accept_lock->robust.list_op_pending = (struct robust_list *)(void *)accept_lock->mutex;
    while (!try_mutex(accept_lock, flags, &found)) {
        syscall(SYS_futex, accept_lock->mutex, FUTEX_WAIT, found, &patience, NULL, 0);
        flags = FUTEX_WAITERS;
        found = atomic_load(accept_lock->mutex);
    }
}

static void give_mutex(struct accept_lock *accept_lock)
{
    if (atomic_exchange(accept_lock->mutex, 0) & FUTEX_WAITERS)
        syscall(SYS_futex, accept_lock->mutex, FUTEX_WAKE, 1, NULL, NULL, 0);
    accept_lock->robust.list_op_pending = NULL;
}

/* ---- either ---- */

bool accept_lock_take(struct accept_lock *accept_lock)
{
    if (accept_lock->file >= 0)
        return lock(accept_lock->file, F_WRLCK);
    if (accept_lock->self == 0 && !begin_worker(accept_lock))
        return false;
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
