/* Whose turn it is: one process or thread at a time does what the others wait for. One that dies
 * meanwhile loses it. */
#ifndef COMMON_WORKERS_ACCEPT_LOCK_H
#define COMMON_WORKERS_ACCEPT_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct turn {
    int file;               /* the one that has the turn holds a lock on it; or -1: */
    pthread_mutex_t *mutex; /* it holds that, in shared memory */
};

/* Each false, with errno set, if there is none to be had. */
bool turn_open_file(struct turn *turn);
bool turn_open_mutex(struct turn *turn);
/* Waits for the turn; false if it cannot be had. */
bool turn_take(struct turn *turn);
void turn_give(struct turn *turn);

#endif
