/* Whose turn it is: one process or thread at a time does what the others wait for. One that dies
 * meanwhile loses it. */
#ifndef COMMON_WORKERS_ACCEPT_LOCK_H
#define COMMON_WORKERS_ACCEPT_LOCK_H

#include "common/base/lock.h"

struct accept_lock {
    int file;           /* the one that has the turn holds a lock on it; or -1: */
    struct lock *mutex; /* it holds that, in shared memory */
};

/* Each false, with errno set, if there is none to be had. */
bool accept_lock_open_file(struct accept_lock *turn);
bool accept_lock_open_mutex(struct accept_lock *turn);
/* Waits for the turn; false if it cannot be had. */
bool accept_lock_take(struct accept_lock *turn);
void accept_lock_give(struct accept_lock *turn);

#endif
