/* Assembles a filter of system calls for the kernel, and loads it. */
#include "common/base/syscall_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
_Static_assert(false, "the AUDIT_ARCH_ of this architecture is missing");
#endif

static void put(struct syscall_filter *filter, uint16_t code, uint32_t value, uint8_t yes,
                uint8_t no)
{
    if (filter->length < SYSCALL_FILTER_LIMIT)
        filter->code[filter->length++] = (struct sock_filter){code, yes, no, value};
}

static void load_word(struct syscall_filter *filter, size_t offset)
{
    put(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void give(struct syscall_filter *filter, uint32_t action)
{
    put(filter, BPF_RET | BPF_K, action, 0, 0);
}

/* Every rule finds the number of the call loaded, and leaves it so. */
void syscall_filter_begin(struct syscall_filter *filter)
{
    filter->length = 0;
    load_word(filter, offsetof(struct seccomp_data, arch));
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    give(filter, SECCOMP_RET_KILL_PROCESS);
    load_word(filter, offsetof(struct seccomp_data, nr));
}

/* A test of 32 bits takes three instructions. If it fails, it jumps `rest` instructions on. */
#define TEST_LENGTH 3
static void test_word(struct syscall_filter *filter, size_t offset, uint32_t mask, uint32_t value,
                      int rest)
{
    load_word(filter, offset);
    put(filter, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, value, 0, (uint8_t)rest);
}

static void put_rule(struct syscall_filter *filter, const struct syscall_rule *rule)
{
    /* The tests, the permission, and the number loaded again. */
    int rest = rule->tests * 2 * TEST_LENGTH + 1;

    put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->number, 0,
        (uint8_t)(rule->tests > 0 ? rest + 1 : 1));
    for (int i = 0; i < rule->tests; i++) {
        const struct syscall_test *test = &rule->test[i];
        size_t low = offsetof(struct seccomp_data, args) + test->argument * sizeof(uint64_t);
        rest -= TEST_LENGTH;
        test_word(filter, low, (uint32_t)test->mask, (uint32_t)test->value, rest);
        rest -= TEST_LENGTH;
        test_word(filter, low + 4, (uint32_t)(test->mask >> 32), (uint32_t)(test->value >> 32),
                  rest);
    }
    give(filter, SECCOMP_RET_ALLOW);
    if (rule->tests > 0)
        load_word(filter, offsetof(struct seccomp_data, nr));
}

void syscall_filter_allow(struct syscall_filter *filter, const struct syscall_rule *rules,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_rule(filter, &rules[i]);
}

void syscall_filter_fail(struct syscall_filter *filter, long number, int error)
{
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
    give(filter, SECCOMP_RET_ERRNO | (uint32_t)error);
}

bool syscall_filter_load(struct syscall_filter *filter, bool kills)
{
    struct sock_fprog program = {.filter = filter->code};

    give(filter, kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
    if (filter->length == SYSCALL_FILTER_LIMIT) {
        errno = E2BIG;
        return false;
    }
    program.len = filter->length;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}
