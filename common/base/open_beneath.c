/* Opens files below a directory by openat2(). */
#include "common/base/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

/* EAGAIN means that something was renamed at the same time, which passes, or that somebody holds a
 * lease on the file, which may last. */
#define TRIES 8

int open_beneath(int directory, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int tries = TRIES;
    long file;

    do
        file = syscall(SYS_openat2, directory, path[0] != '\0' ? path : ".", &how, sizeof how);
    while (file < 0 && (errno == EINTR || errno == EAGAIN) && --tries > 0);
    return (int)file;
}
