/* Locks accept: by a lock on a file, or by a mutex. */
#include "common/workers/accept_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
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

    if (memory == MAP_FAILED)
        return false;
    *accept_lock = (struct accept_lock){.file = -1, .mutex = memory};
    return lock_open(accept_lock->mutex);
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

bool accept_lock_take(struct accept_lock *accept_lock)
{
    if (accept_lock->file >= 0)
        return lock(accept_lock->file, F_WRLCK);
    if (accept_lock->self == 0)
        accept_lock->self = getpid();
    /* It protects no data: a holder's death does no harm. */
    lock_take(accept_lock->mutex, accept_lock->self);
    return true;
}

void accept_lock_give(struct accept_lock *accept_lock)
{
    if (accept_lock->file >= 0)
        lock(accept_lock->file, F_UNLCK);
    else
        lock_give(accept_lock->mutex, accept_lock->self);
}
