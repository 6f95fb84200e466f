/* A lock that processes and threads share, in shared memory. If its holder dies, it is free again.
 */
#ifndef COMMON_BASE_LOCK_H
#define COMMON_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct lock {
    pthread_mutex_t mutex;
};

/* Initialises the lock; false, with errno set, if that fails. */
bool lock_open(struct lock *lock);
/* Waits until the caller holds the lock. False if the holder before it has died: the data that the
 * lock protects may be inconsistent. The caller holds it all the same. */
bool lock_take(struct lock *lock);
void lock_give(struct lock *lock);

#endif
