/* A lock between processes: one that dies while it holds it takes nobody else along. */
#ifndef COMMON_BASE_LOCK_H
#define COMMON_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct lock {
    pthread_mutex_t mutex; /* in memory that all its users share */
};

bool lock_open(struct lock *lock);
/* False: who held it before has died, and what it guards may be half done. It is held all the same.
 */
bool lock_take(struct lock *lock);
void lock_give(struct lock *lock);

#endif
