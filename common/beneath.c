#include "common/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int beneath_open(int directory, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long file;

    do
        file = syscall(SYS_openat2, directory, path[0] != '\0' ? path : ".", &how, sizeof how);
    while (file < 0 && (errno == EINTR || errno == EAGAIN));
    return (int)file;
}
