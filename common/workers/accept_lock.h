/* The lock that a worker process holds while it waits in accept. If its holder dies, it is free.
 * Unlike struct lock, the mutex does not go to the worker that has waited longest: one that runs
 * may take it again, which spares a change of processes for each connection. */
#ifndef COMMON_WORKERS_ACCEPT_LOCK_H
#define COMMON_WORKERS_ACCEPT_LOCK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct accept_lock {
    int file;                /* the holder locks this file; -1: the mutex instead */
    _Atomic uint32_t *mutex; /* a futex in shared memory: the holder, or 0 */
    uint32_t self;           /* the worker; 0 until it first takes the mutex */
    /* By this the kernel finds the mutex of a worker that dies. It lies in the worker's own memory:
     * no other process can change where it points. */
    struct robust_list_head robust;
};

/* Makes a lock of either kind; false, with errno set, on failure. */
bool accept_lock_open(struct accept_lock *accept_lock, bool mutex);
/* Waits until the caller holds the lock; false if it cannot. */
bool accept_lock_take(struct accept_lock *accept_lock);
void accept_lock_give(struct accept_lock *accept_lock);

#endif
