/* A lock that processes and threads share: a robust mutex. */
#include "common/base/lock.h"

#include <errno.h>

bool lock_open(struct lock *lock)
{
    pthread_mutexattr_t attributes;

    errno = pthread_mutexattr_init(&attributes);
    if (errno != 0)
        return false;
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    errno = pthread_mutex_init(&lock->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return errno == 0;
}

bool lock_take(struct lock *lock)
{
    if (pthread_mutex_lock(&lock->mutex) != EOWNERDEAD)
        return true;
    pthread_mutex_consistent(&lock->mutex);
    return false;
}

void lock_give(struct lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}
