/* The lock that a worker process holds while it waits in accept. If its holder dies, it is free. */
#ifndef COMMON_WORKERS_ACCEPT_LOCK_H
#define COMMON_WORKERS_ACCEPT_LOCK_H

#include "common/base/lock.h"

struct accept_lock {
    int file;           /* the holder locks this file; -1: the mutex instead */
    struct lock *mutex; /* in shared memory */
    pid_t self;         /* the worker; 0 until it first takes the mutex */
};

/* Makes a lock of either kind; false, with errno set, on failure. */
bool accept_lock_open(struct accept_lock *accept_lock, bool mutex);
/* Waits until the caller holds the lock; false if it cannot. */
bool accept_lock_take(struct accept_lock *accept_lock);
void accept_lock_give(struct accept_lock *accept_lock);

#endif
