/* An eventfd: wakes the processes and threads that poll it. */
#ifndef COMMON_BASE_WAKEUP_H
#define COMMON_BASE_WAKEUP_H

#include <stdbool.h>

/* Makes the descriptor readable, or adds one to a semaphore. Returns false if it could not. */
bool wakeup_ring(int descriptor);
/* Makes it unreadable again. */
void wakeup_clear(int descriptor);

#endif
