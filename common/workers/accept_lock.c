#include "common/workers/accept_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

bool accept_lock_open_file(struct accept_lock *turn)
{
    *turn = (struct accept_lock){.file = memfd_create("turn", MFD_CLOEXEC)};
    return turn->file >= 0;
}

bool accept_lock_open_mutex(struct accept_lock *turn)
{
    void *memory =
        mmap(NULL, sizeof *turn->mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    *turn = (struct accept_lock){.file = -1, .mutex = memory};
    return lock_open(turn->mutex);
}

static bool lock(int file, short how)
{
    struct flock lock = {.l_type = how, .l_whence = SEEK_SET};

    while (fcntl(file, F_SETLKW, &lock) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

bool accept_lock_take(struct accept_lock *turn)
{
    if (turn->file >= 0)
        return lock(turn->file, F_WRLCK);
    lock_take(turn->mutex); /* it protects no data: a holder's death does no harm */
    return true;
}

void accept_lock_give(struct accept_lock *turn)
{
    if (turn->file >= 0)
        lock(turn->file, F_UNLCK);
    else
        lock_give(turn->mutex);
}
