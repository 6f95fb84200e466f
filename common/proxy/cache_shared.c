/* Maps the file that the processes with the same cache directory share, and repairs it. */
#include "common/proxy/cache_shared.h"

#include "common/proxy/cache_name.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* The cache whose file this process has mapped. It is static, since a signal handler gets no
 * argument. */
static struct cache mapped;

/* Gives the file its full length again. Returns false if it had that, or cannot have it. */
static bool lengthen(void)
{
    const off_t size = sizeof *mapped.shared;
    int file = cache_file_open(&mapped, CACHE_NAME_SHARED, O_RDWR | O_CREAT);
    struct stat status;
    bool repaired = file >= 0 && fstat(file, &status) == 0 && status.st_size < size &&
                    fallocate(file, 0, 0, size) == 0;

    if (file >= 0)
        close(file);
    return repaired;
}

/* Handles SIGBUS: somebody has made the file shorter, and a process has touched memory behind its
 * end. The file gets zeros there; if that fails, this process and its children get memory of their
 * own. Calls async-signal-safe functions only. */
static void repair(int signal, siginfo_t *fault, void *context)
{
    const char *at = fault->si_addr, *start = (const char *)mapped.shared;
    const size_t size = sizeof *mapped.shared;
    int error = errno;

    (void)context;
    if (start == NULL || at < start || at >= start + size ||
        (!lengthen() && mmap(mapped.shared, size, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED))
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* it comes again */
    errno = error;
}

/* If the disk is full, only the processes of this server share the memory. */
bool cache_shared_open(struct cache *cache)
{
    const size_t size = sizeof *cache->shared;
    const struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    int file = cache_file_open(cache, CACHE_NAME_SHARED, O_RDWR | O_CREAT);
    bool shared = file >= 0 && posix_fallocate(file, 0, (off_t)size) == 0;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        shared ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, shared ? file : -1, 0);

    if (file >= 0)
        close(file);
    unlinkat(cache->directory, CACHE_NAME_SHARED_BEFORE, 0);
    if (memory == MAP_FAILED)
        return false;
    cache->shared = memory;
    atomic_store(&cache->shared->counted, false);
    mapped = *cache;
    sigaction(SIGBUS, &action, NULL);
    cache_shared_hear_faults();
    return true;
}

void cache_shared_hear_faults(void)
{
    sigset_t faults;

    sigemptyset(&faults);
    sigaddset(&faults, SIGBUS);
    sigprocmask(SIG_UNBLOCK, &faults, NULL);
}

void cache_shared_close(struct cache *cache)
{
    if (mapped.shared == cache->shared)
        mapped = (struct cache){.directory = -1};
    if (cache->shared != NULL)
        munmap(cache->shared, sizeof *cache->shared);
}

size_t cache_shared_slot(const char *name)
{
    return cache_name_number(name) % CACHE_SHARED_SLOTS;
}

uint64_t cache_shared_size(const struct cache *cache)
{
    int64_t size = atomic_load(&cache->shared->size);

    return size > 0 ? (uint64_t)size : 0;
}

void cache_shared_add_size(const struct cache *cache, int64_t bytes)
{
    atomic_fetch_add(&cache->shared->size, bytes);
}
