/* Waits by epoll: the kernel says which descriptors are ready. */
#ifndef COMMON_WORKERS_POLLER_EPOLL_H
#define COMMON_WORKERS_POLLER_EPOLL_H

#include "common/workers/poller.h"

extern const struct poller_kind poller_epoll;

#endif
