/* The lock that a worker process holds while it waits in accept. If its holder dies, it is free.
 * Unlike struct lock, the mutex need not go to the worker that has waited longest: one that runs
 * may take it again, which spares a change of processes for each connection. */
#ifndef COMMON_WORKERS_ACCEPT_LOCK_H
#define COMMON_WORKERS_ACCEPT_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct accept_lock {
    int file;                /* the holder locks this file; -1: the mutex instead */
    _Atomic uint32_t *mutex; /* a futex in shared memory: the holder and a flag, or 0 */
    uint32_t self;           /* the worker; 0 until it first takes the mutex */
};

/* Makes a lock of either kind; false, with errno set, on failure. */
bool accept_lock_open(struct accept_lock *accept_lock, bool mutex);
/* Waits until the caller holds the lock; false if it cannot. */
bool accept_lock_take(struct accept_lock *accept_lock);
void accept_lock_give(struct accept_lock *accept_lock);
/* For the process that has reaped a worker: frees what the worker held, and wakes another one,
 * which the worker may have been woken for or about to wake. */
void accept_lock_bury(struct accept_lock *accept_lock, pid_t worker);

#endif
