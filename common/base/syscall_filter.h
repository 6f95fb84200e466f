/* A filter of system calls: the kernel (seccomp) runs it before each call of the process. */
#ifndef COMMON_BASE_SYSCALL_FILTER_H
#define COMMON_BASE_SYSCALL_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds if these bits of an argument have this value. An int is tested by its low 32 bits. */
struct syscall_test {
    unsigned argument;
    uint64_t mask, value;
};

/* Allows a system call if all tests of the rule hold. A call may have several rules. */
#define SYSCALL_TESTS 3
struct syscall_rule {
    long number;
    int tests;
    struct syscall_test test[SYSCALL_TESTS];
};

#define SYSCALL_FILTER_LIMIT 1024
struct syscall_filter {
    unsigned short length;
    struct sock_filter code[SYSCALL_FILTER_LIMIT];
};

/* Begins a filter. Calls of another architecture end the process. */
void syscall_filter_begin(struct syscall_filter *filter);

void syscall_filter_allow(struct syscall_filter *filter, const struct syscall_rule *rules,
                          size_t count);
/* Makes a system call fail with this errno. */
void syscall_filter_fail(struct syscall_filter *filter, long number, int error);

/* Gives the filter to the calling thread and to all that it makes. All other calls fail with EPERM,
 * or, with `kills`, end the process. False, with errno set, if the kernel refuses the filter. */
bool syscall_filter_load(struct syscall_filter *filter, bool kills);

#endif
