/* The memory limit of the control group that this process is in, and how much of it is left. */
#ifndef COMMON_BASE_MEMORY_LIMIT_H
#define COMMON_BASE_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the limit in bytes; UINT64_MAX if there is none. */
uint64_t memory_limit(void);

/* As memory_limit(), with another /proc/self/cgroup and another /sys/fs/cgroup. */
uint64_t memory_limit_in(const char *groups, const char *mount);

/* Tells how much memory the group with the limit uses. */
struct memory_gauge {
    uint64_t limit;
    int usage, details; /* files; -1: it cannot tell */
};

void memory_gauge_open(struct memory_gauge *gauge);
/* As memory_gauge_open(), with another /proc/self/cgroup and another /sys/fs/cgroup. */
void memory_gauge_open_in(struct memory_gauge *gauge, const char *groups, const char *mount);
/* Returns true if less than an eighth is left; the page cache counts as free. */
bool memory_gauge_is_low(const struct memory_gauge *gauge);

#endif
