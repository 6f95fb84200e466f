/* The base of the unit tests: each row of a table becomes a case with a name. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include "common/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#define UNIT_LIMIT 1000

static struct CMUnitTest unit_tests[UNIT_LIMIT];
static size_t unit_count;

/* Says that a case cannot be tried here, and returns from it. The skip() of cmocka prints `not ok`,
 * which fails. */
#define UNIT_SKIP(reason)                                                                          \
    do {                                                                                           \
        printf("# skipped: %s\n", reason);                                                         \
        return;                                                                                    \
    } while (0)

/* Returns the name in characters that a line of TAP can show. */
static inline const char *unit_printable(const char *name)
{
    static char names[64 * 1024];
    static size_t used;
    const char *printable = names + used;

    if (*name == '\0')
        name = "(nothing)";
    for (; *name != '\0'; name++) {
        unsigned char byte = (unsigned char)*name;
        if (sizeof names - used < 8)
            __builtin_trap();
        if (byte == '\r' || byte == '\n')
            used += (size_t)sprintf(names + used, "\\%c", byte == '\r' ? 'r' : 'n');
        else if (byte < ' ' || byte >= 0x7f || byte == '#')
            used += (size_t)sprintf(names + used, "\\x%02x", byte);
        else
            names[used++] = *name;
    }
    names[used++] = '\0';
    return printable;
}

static inline void unit_add(const char *name, void (*function)(void **), const void *row)
{
    if (unit_count == UNIT_LIMIT)
        __builtin_trap();
    unit_tests[unit_count++] = (struct CMUnitTest){.name = unit_printable(name),
                                                   .test_func = function,
                                                   .initial_state = (void *)(uintptr_t)row};
}

/* Adds a case for each row of a table whose rows begin with their name. */
#define UNIT_TABLE(table, function)                                                                \
    for (size_t row_ = 0; row_ < sizeof(table) / sizeof(table)[0]; row_++)                         \
    unit_add((table)[row_].name, function, &(table)[row_])

/* Waits for the end of a process, and returns its status. */
static inline int unit_end_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static inline int unit_run(const char *group)
{
    return _cmocka_run_group_tests(group, unit_tests, unit_count, NULL, NULL);
}

#endif
