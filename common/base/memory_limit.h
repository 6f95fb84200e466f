/* The memory limit of the control group that this process is in. */
#ifndef COMMON_BASE_MEMORY_LIMIT_H
#define COMMON_BASE_MEMORY_LIMIT_H

#include <stdint.h>

/* Returns the limit in bytes; UINT64_MAX if there is none. */
uint64_t memory_limit(void);

/* As memory_limit(), with another /proc/self/cgroup and another /sys/fs/cgroup. */
uint64_t memory_limit_in(const char *groups, const char *mount);

#endif
