/* An eventfd: wakes the processes and threads that poll it. */
#ifndef COMMON_BASE_WAKEUP_H
#define COMMON_BASE_WAKEUP_H

/* Makes the descriptor readable. */
void wakeup_ring(int descriptor);
/* Makes it unreadable again. */
void wakeup_clear(int descriptor);

#endif
