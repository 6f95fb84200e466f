/* A table of small entries in the memory of a process. A thread that finds a slot in use goes on
 * without it. */
#include "common/proxy/cache_memory.h"

#include "common/proxy/block_checksums.h"
#include "common/proxy/cache_name.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The most entries in the table, each of 8 KiB at most. */
#define SLOTS 256

struct slot {
    atomic_bool taken;       /* by a thread */
    _Atomic uint64_t number; /* of the name */
    uint64_t identity, seed;
    size_t length;
    char *bytes; /* from malloc */
    char name[CACHE_NAME_SIZE];
};

struct cache_memory {
    struct slot slots[SLOTS];
};

/* Mapped, not allocated: a child process inherits it empty. */
void cache_memory_open(struct cache *cache)
{
    void *memory = mmap(NULL, sizeof *cache->recent, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cache->recent = memory != MAP_FAILED ? memory : NULL;
}

void cache_memory_close(struct cache *cache)
{
    if (cache->recent == NULL)
        return;
    for (int i = 0; i < SLOTS; i++)
        free(cache->recent->slots[i].bytes);
    munmap(cache->recent, sizeof *cache->recent);
    cache->recent = NULL;
}

static struct slot *slot_of(const struct cache *cache, uint64_t number)
{
    return &cache->recent->slots[number % SLOTS];
}

static bool take_slot(struct slot *slot)
{
    return !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire);
}

static void release_slot(struct slot *slot)
{
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

void cache_memory_keep(const struct cache *cache, const char *name, uint64_t identity,
                       uint64_t seed, struct text bytes)
{
    uint64_t number = cache_name_number(name);
    struct slot *slot;

    if (cache->recent == NULL || identity == 0)
        return;
    slot = slot_of(cache, number);
    if (!take_slot(slot))
        return;
    free(slot->bytes);
    slot->bytes = malloc(bytes.length);
    atomic_store_explicit(&slot->number, slot->bytes != NULL ? number : 0, memory_order_relaxed);
    if (slot->bytes != NULL) {
        memcpy(slot->bytes, bytes.data, bytes.length);
        memcpy(slot->name, name, CACHE_NAME_LENGTH + 1);
        slot->length = bytes.length;
        slot->identity = identity;
        slot->seed = seed;
    }
    release_slot(slot);
}

/* Returns a copy of what the slot holds, if that is what the file holds. */
static char *copy_from(const struct slot *slot, const char *name, const struct stat *status)
{
    char *copy;

    if (slot->bytes == NULL || strcmp(slot->name, name) != 0 ||
        (uint64_t)status->st_size != slot->length ||
        block_checksums_identity(status, slot->seed) != slot->identity)
        return NULL;
    copy = malloc(slot->length);
    if (copy != NULL)
        memcpy(copy, slot->bytes, slot->length);
    return copy;
}

char *cache_memory_take(const struct cache *cache, const char *name, struct stat *status)
{
    uint64_t number = cache_name_number(name);
    struct slot *slot;
    char *copy;

    if (cache->recent == NULL)
        return NULL;
    slot = slot_of(cache, number);
    if (atomic_load_explicit(&slot->number, memory_order_relaxed) != number ||
        fstatat(cache->directory, name, status, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(status->st_mode) || status->st_uid != cache->owner || !take_slot(slot))
        return NULL;
    copy = copy_from(slot, name, status);
    release_slot(slot);
    return copy;
}
