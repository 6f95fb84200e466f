/* Wakes other processes and threads by an eventfd. */
#include "common/base/wakeup.h"

#include <stdint.h>
#include <unistd.h>

bool wakeup_ring(int descriptor)
{
    uint64_t one = 1;

    return write(descriptor, &one, sizeof one) == (ssize_t)sizeof one;
}

void wakeup_clear(int descriptor)
{
    uint64_t count;

    if (read(descriptor, &count, sizeof count) < 0)
        return; /* it was not readable */
}
