/* A library to preload for valgrind 3.19, which does not know openat2: it calls openat instead. The
 * checks of openat2 are left out, so it is only for runs that search for leaks. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/syscall.h>

static long call(long number, const long argument[6])
{
    register long fourth __asm__("r10") = argument[3];
    register long fifth __asm__("r8") = argument[4];
    register long sixth __asm__("r9") = argument[5];
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(argument[0]), "S"(argument[1]), "d"(argument[2]),
                       "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

long syscall(long number, ...);

long syscall(long number, ...)
{
    long argument[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2) {
        const struct open_how *how = (const struct open_how *)argument[2];
        return openat((int)argument[0], (const char *)argument[1], (int)how->flags,
                      (mode_t)how->mode);
    }
    return call(number, argument);
}
