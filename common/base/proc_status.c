/* Reads numbers from /proc/self/status. */
#include "common/base/proc_status.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int proc_status_open(void)
{
    return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
}

long proc_status_number(int file, const char *name)
{
    char status[4096];
    ssize_t length = pread(file, status, sizeof status - 1, 0);
    const char *line;

    status[length > 0 ? length : 0] = '\0';
    line = strstr(status, name);
    return line != NULL ? strtol(line + strlen(name), NULL, 10) : -1;
}
