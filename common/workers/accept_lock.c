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
    pthread_mutexattr_t attributes;
    void *memory =
        mmap(NULL, sizeof *turn->mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    *turn = (struct accept_lock){.file = -1, .mutex = memory};
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    errno = pthread_mutex_init(turn->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return errno == 0;
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
    int result;

    if (turn->file >= 0)
        return lock(turn->file, F_WRLCK);
    result = pthread_mutex_lock(turn->mutex);
    if (result == EOWNERDEAD) /* it left nothing torn behind: the turn is all there is */
        result = pthread_mutex_consistent(turn->mutex);
    return result == 0;
}

void accept_lock_give(struct accept_lock *turn)
{
    if (turn->file >= 0)
        lock(turn->file, F_UNLCK);
    else
        pthread_mutex_unlock(turn->mutex);
}
