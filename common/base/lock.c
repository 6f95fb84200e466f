#include "common/base/lock.h"

#include <errno.h>

bool lock_open(struct lock *lock)
{
    pthread_mutexattr_t attributes;
    bool good;

    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    good = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
           pthread_mutex_init(&lock->mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return good;
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
