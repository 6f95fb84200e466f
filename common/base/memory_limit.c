/* Finds the memory limit of the control group that this process is in, of version 1 or 2,
 * and how much of it is left. */
#include "common/base/memory_limit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS "/proc/self/cgroup"
#define MOUNT  "/sys/fs/cgroup"

/* Without a limit, version 1 reports a number of at least this size. */
#define UNLIMITED (UINT64_C(1) << 60)

/* Returns the number in the file. A file that cannot be read, or that says "max", is no limit. */
static uint64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long long limit = UINT64_MAX;

    if (file == NULL)
        return UINT64_MAX;
    if (fscanf(file, "%llu", &limit) != 1 || limit >= UNLIMITED)
        limit = UINT64_MAX;
    fclose(file);
    return limit;
}

/* The group with the lowest limit. */
struct found {
    uint64_t limit;
    bool version_2;
    char path[PATH_MAX];
};

/* Looks at the group and at those above it. In a container the path may be one of the host: then
 * the group is the top of the mount. */
static void find_lowest(struct found *found, const char *mount, char *group, bool version_2)
{
    const char *name = version_2 ? "memory.max" : "memory.limit_in_bytes";
    char path[PATH_MAX];

    for (;;) {
        char *slash = strrchr(group, '/');
        uint64_t limit = UINT64_MAX;
        if (snprintf(path, sizeof path, "%s%s/%s", mount, group, name) < (int)sizeof path)
            limit = read_limit(path);
        if (limit < found->limit) {
            found->limit = limit;
            found->version_2 = version_2;
            snprintf(found->path, sizeof found->path, "%s%s", mount, group);
        }
        if (slash == NULL)
            return;
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
static void find_in_line(struct found *found, const char *mount, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(++controllers, ':') : NULL;
    char version_1[PATH_MAX];

    if (group == NULL)
        return;
    group++;
    group[strcspn(group, "\n")] = '\0';
    if (controllers + 1 == group)
        find_lowest(found, mount, group, true);
    else if (names_memory(controllers, (size_t)(group - 1 - controllers)) &&
             snprintf(version_1, sizeof version_1, "%s/memory", mount) < (int)sizeof version_1)
        find_lowest(found, version_1, group, false);
}

static void find(struct found *found, const char *groups, const char *mount)
{
    FILE *file = fopen(groups, "re");
    char *line = NULL;
    size_t size = 0;

    found->limit = UINT64_MAX;
    while (file != NULL && getline(&line, &size, file) > 0)
        find_in_line(found, mount, line);
    free(line);
    if (file != NULL)
        fclose(file);
}

uint64_t memory_limit_in(const char *groups, const char *mount)
{
    struct found found;

    find(&found, groups, mount);
    return found.limit;
}

uint64_t memory_limit(void)
{
    return memory_limit_in(GROUPS, MOUNT);
}

/* ---- what is left ---- */

static int open_beside(const struct found *found, const char *name)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", found->path, name) >= (int)sizeof path)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

void memory_gauge_open_in(struct memory_gauge *gauge, const char *groups, const char *mount)
{
    struct found found;

    find(&found, groups, mount);
    *gauge = (struct memory_gauge){found.limit, -1, -1};
    if (found.limit == UINT64_MAX)
        return;
    gauge->usage =
        open_beside(&found, found.version_2 ? "memory.current" : "memory.usage_in_bytes");
    gauge->details = open_beside(&found, "memory.stat");
}

void memory_gauge_open(struct memory_gauge *gauge)
{
    memory_gauge_open_in(gauge, GROUPS, MOUNT);
}

static void read_text(int file, char *text, size_t size)
{
    ssize_t length = pread(file, text, size - 1, 0);

    text[length > 0 ? length : 0] = '\0';
}

/* Returns the number behind the name in a line of the text. In version 1, lines that begin with
 * "total_" count the groups below as well. */
static uint64_t number_of(const char *text, const char *name)
{
    char line[64];
    const char *found;

    snprintf(line, sizeof line, "\ntotal_%s ", name);
    found = strstr(text, line);
    if (found == NULL) {
        snprintf(line, sizeof line, "\n%s ", name);
        found = strstr(text, line);
    }
    return found != NULL ? strtoull(found + strlen(line), NULL, 10) : 0;
}

bool memory_gauge_is_low(const struct memory_gauge *gauge)
{
    uint64_t most = gauge->limit / 8 * 7, used;
    char text[8192];

    if (gauge->usage < 0 || gauge->details < 0)
        return false;
    read_text(gauge->usage, text, sizeof text);
    used = strtoull(text, NULL, 10);
    if (used <= most)
        return false;
    read_text(gauge->details, text, sizeof text);
    return used > most + number_of(text, "inactive_file") + number_of(text, "active_file");
}
