/* Wakes other processes and threads by an eventfd. */
#include "common/base/wakeup.h"

#include <stdint.h>
#include <unistd.h>

void wakeup_ring(int descriptor)
{
    uint64_t one = 1;

    if (write(descriptor, &one, sizeof one) < 0)
        return; /* the counter is full, so the descriptor is readable already */
}

void wakeup_clear(int descriptor)
{
    uint64_t count;

    if (read(descriptor, &count, sizeof count) < 0)
        return; /* it was not readable */
}
