/* Finds the memory limit of the control group that this process is in, of version 1 or 2. */
#include "common/base/memory_limit.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number in the file. A file that cannot be read, or that says "max", is no limit. */
static uint64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long long limit = UINT64_MAX;

    if (file == NULL)
        return UINT64_MAX;
    if (fscanf(file, "%llu", &limit) != 1)
        limit = UINT64_MAX;
    fclose(file);
    return limit;
}

/* Returns the lowest limit of the group and of those above it. In a container the path may be one
 * of the host: then the group is the top of the mount. */
static uint64_t lowest_limit(const char *mount, char *group, const char *name)
{
    uint64_t lowest = UINT64_MAX;
    char path[PATH_MAX];

    for (;;) {
        char *slash = strrchr(group, '/');
        uint64_t limit = UINT64_MAX;
        if (snprintf(path, sizeof path, "%s%s/%s", mount, group, name) < (int)sizeof path)
            limit = read_limit(path);
        if (limit < lowest)
            lowest = limit;
        if (slash == NULL)
            return lowest;
        *slash = '\0';
    }
}

/* Returns true if the list, which is separated by commas, names the controller of memory. */
static bool names_memory(const char *controllers, size_t length)
{
    static const char name[] = "memory";
    const size_t size = sizeof name - 1;

    for (size_t i = 0; i + size <= length; i++)
        if (memcmp(controllers + i, name, size) == 0 && (i == 0 || controllers[i - 1] == ',') &&
            (i + size == length || controllers[i + size] == ','))
            return true;
    return false;
}

/* A line is "NUMBER:CONTROLLERS:PATH". Version 2 has no controllers. */
static uint64_t limit_of_line(const char *mount, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(++controllers, ':') : NULL;
    char version_1[PATH_MAX];

    if (group == NULL)
        return UINT64_MAX;
    group++;
    group[strcspn(group, "\n")] = '\0';
    if (controllers + 1 == group)
        return lowest_limit(mount, group, "memory.max");
    if (!names_memory(controllers, (size_t)(group - 1 - controllers)) ||
        snprintf(version_1, sizeof version_1, "%s/memory", mount) >= (int)sizeof version_1)
        return UINT64_MAX;
    return lowest_limit(version_1, group, "memory.limit_in_bytes");
}

uint64_t memory_limit_in(const char *groups, const char *mount)
{
    FILE *file = fopen(groups, "re");
    uint64_t lowest = UINT64_MAX;
    char *line = NULL;
    size_t size = 0;

    while (file != NULL && getline(&line, &size, file) > 0) {
        uint64_t limit = limit_of_line(mount, line);
        if (limit < lowest)
            lowest = limit;
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return lowest;
}

uint64_t memory_limit(void)
{
    return memory_limit_in("/proc/self/cgroup", "/sys/fs/cgroup");
}
