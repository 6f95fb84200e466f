/* Takes memory, and writes to each page of it. */
#include "common/base/ballast.h"

#include "common/base/memory_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL_PAGE 4096

/* Returns the bytes of this process in huge pages; 0 if the kernel does not tell. */
static uint64_t huge_bytes(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    uint64_t kibibytes = 0;
    char line[128];

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "AnonHugePages: %" SCNu64 " kB", &kibibytes) == 1)
            break;
    fclose(file);
    return kibibytes * 1024;
}

bool ballast_is_possible(uint64_t bytes)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    return bytes <= machine && bytes <= memory_limit();
}

void *ballast_take(uint64_t bytes, bool huge_pages)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    if (madvise(memory, bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) < 0 && huge_pages)
        return NULL;
    for (uint64_t i = 0; i < bytes; i += SMALL_PAGE)
        ((volatile char *)memory)[i] = 1;
    if (!huge_pages || huge_bytes() >= bytes / 2)
        return memory;
    errno = ENOTSUP;
    return NULL;
}

void ballast_inherit(void *memory, uint64_t bytes, bool inherited)
{
    if (memory != NULL)
        madvise(memory, bytes, inherited ? MADV_DOFORK : MADV_DONTFORK);
}
