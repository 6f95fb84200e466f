/* Waits by a ring: the kernel receives, sends and waits for descriptors, and says what has ended.
 */
#ifndef COMMON_WORKERS_POLLER_URING_H
#define COMMON_WORKERS_POLLER_URING_H

#include "common/workers/poller.h"

extern const struct poller_kind poller_uring;

#endif
