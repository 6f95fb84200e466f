/* A lock that processes and threads share. If its holder dies, it is free again. It holds no
 * pointer: a process that writes nonsense to it makes others wait, and no more. So a process that
 * must not wait takes no lock in memory that others can write to. */
#ifndef COMMON_BASE_LOCK_H
#define COMMON_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lock {
    _Atomic uint32_t holder; /* the thread's identifier and flags, as the kernel writes them */
};

/* Initialises the lock; false, with errno set, if this kernel has no such locks. */
bool lock_open(struct lock *lock);
/* Waits until this thread, whose identifier is `self`, holds the lock. False if the holder before
 * it has died: the data that the lock protects may be inconsistent. Only where others want the
 * lock, too, it makes system calls. */
bool lock_take(struct lock *lock, pid_t self);
void lock_give(struct lock *lock, pid_t self);

#endif
