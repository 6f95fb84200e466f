/* A lock that processes and threads share, in shared memory. If its holder dies, it is free again.
 * It holds no pointer: a process that writes nonsense to it makes others wait, and no more. */
#ifndef COMMON_BASE_LOCK_H
#define COMMON_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* So long lock_take() waits. */
#define LOCK_SECONDS 10

struct lock {
    _Atomic uint32_t holder; /* the thread's identifier and flags, as the kernel writes them */
};

/* Initialises the lock; false, with errno set, if this kernel has no such locks. */
bool lock_open(struct lock *lock);
/* Waits until the caller holds the lock. False if the holder before it has died: the data that the
 * lock protects may be inconsistent. The caller holds it all the same, unless the holder kept it
 * for LOCK_SECONDS: then nobody holds it. */
bool lock_take(struct lock *lock);
void lock_give(struct lock *lock);

/* The same without an end, for a thread that knows its identifier. It makes system calls only where
 * others want the lock, too. */
bool lock_wait(struct lock *lock, pid_t self);
void lock_end(struct lock *lock, pid_t self);

#endif
