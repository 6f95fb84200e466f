/* Keeps the cache directory below its limit, and removes files that dead processes left. */
#include "common/proxy/cache_evict.h"

#include "common/proxy/cache_name.h"
#include "common/proxy/cache_shared.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Trimming removes entries until this percentage of the limit is left. */
#define TRIM_PERCENT 90

/* ---- one entry ---- */

/* Returns the bytes that this frees. */
static int64_t remove_file(const struct cache *cache, const char *name)
{
    struct stat status;
    bool known = fstatat(cache->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0;

    return unlinkat(cache->directory, name, 0) == 0 && known ? cache_file_disk_size(&status) : 0;
}

int64_t cache_evict_record(const struct cache *cache, const char *entry)
{
    char name[CACHE_NAME_SIZE];

    cache_name_other(name, CACHE_NAME_RECORD, entry);
    return remove_file(cache, name);
}

/* Returns the bytes that this frees. */
static int64_t remove_entry(const struct cache *cache, const char *name)
{
    int64_t size = remove_file(cache, name);

    if (name[0] == CACHE_NAME_ENTRY && size > CACHE_COPY_LIMIT)
        size += cache_evict_record(cache, name);
    return size;
}

void cache_evict_entry(const struct cache *cache, const char *name)
{
    cache_shared_add_size(cache, -remove_entry(cache, name));
}

/* ---- the inventory ---- */

struct item {
    int64_t used; /* in nanoseconds since 1970 */
    int64_t size;
    char name[CACHE_NAME_SIZE];
};

struct inventory {
    struct item *items;
    size_t count, capacity;
    int64_t size;
};

static void add_item(struct inventory *inventory, const char *name, const struct stat *status)
{
    struct item *item;

    if (inventory->count == inventory->capacity) {
        size_t capacity = inventory->capacity * 2 + 256;
        item = realloc(inventory->items, capacity * sizeof *item);
        if (item == NULL)
            return;
        inventory->items = item;
        inventory->capacity = capacity;
    }
    item = &inventory->items[inventory->count++];
    item->used = (int64_t)status->st_atim.tv_sec * 1000000000 + status->st_atim.tv_nsec;
    item->size = cache_file_disk_size(status);
    inventory->size += item->size;
    memcpy(item->name, name, CACHE_NAME_LENGTH + 1);
}

/* Removes a temporary file that no process has locked: no process writes it. Holds the lock
 * meanwhile, so that a process which has just made the file, and not locked it yet, notices. */
static bool remove_abandoned(const struct cache *cache, const char *name)
{
    int file = cache_file_open(cache, name, O_RDONLY);
    bool abandoned = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 &&
                     unlinkat(cache->directory, name, 0) == 0;

    if (file >= 0)
        close(file);
    return abandoned;
}

static bool has_entry(const struct cache *cache, const char *record)
{
    char name[CACHE_NAME_SIZE];
    struct stat status;

    cache_name_other(name, CACHE_NAME_ENTRY, record);
    return fstatat(cache->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void inspect(const struct cache *cache, struct inventory *inventory, const char *name)
{
    struct stat status;

    if (!cache_name_is_valid(name) ||
        fstatat(cache->directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(status.st_mode))
        return;
    if (name[0] == CACHE_NAME_ENTRY || name[0] == CACHE_NAME_PART)
        add_item(inventory, name, &status);
    else if (name[0] == CACHE_NAME_TEMPORARY ? !remove_abandoned(cache, name)
                                             : has_entry(cache, name))
        inventory->size += cache_file_disk_size(&status);
    else if (name[0] == CACHE_NAME_RECORD)
        unlinkat(cache->directory, name, 0);
}

static bool take_inventory(const struct cache *cache, struct inventory *inventory)
{
    int file = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = file >= 0 ? fdopendir(file) : NULL;
    const struct dirent *entry;

    *inventory = (struct inventory){0};
    if (directory == NULL) {
        if (file >= 0)
            close(file);
        return false;
    }
    while ((entry = readdir(directory)) != NULL)
        inspect(cache, inventory, entry->d_name);
    closedir(directory);
    return true;
}

/* ---- trimming ---- */

static int by_use(const void *a, const void *b)
{
    const struct item *first = a, *second = b;

    return first->used < second->used ? -1 : first->used > second->used;
}

static void remove_least_used(const struct cache *cache, struct inventory *inventory, int64_t limit,
                              int64_t wanted)
{
    if (inventory->size <= limit || inventory->count == 0)
        return;
    qsort(inventory->items, inventory->count, sizeof *inventory->items, by_use);
    for (size_t i = 0; i < inventory->count && inventory->size > wanted; i++)
        inventory->size -= remove_entry(cache, inventory->items[i].name);
}

/* Trims, unless another process is trimming. Bytes that others add while this one counts are added
 * to the count. If `room` is not 0, removes so many bytes whatever the size of the cache is.
 * Returns the bytes that it has removed. */
static int64_t trim(const struct cache *cache, int64_t room)
{
    int64_t limit = (int64_t)cache->limit, wanted = (int64_t)(cache->limit / 100 * TRIM_PERCENT);
    int64_t removed = 0;
    int lock = cache_file_open(cache, CACHE_NAME_SHARED, O_RDWR | O_CREAT);
    struct inventory inventory;
    int64_t before;

    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
        before = atomic_load(&cache->shared->size);
        if (take_inventory(cache, &inventory)) {
            removed = inventory.size;
            if (room == 0)
                remove_least_used(cache, &inventory, limit, wanted);
            else
                remove_least_used(cache, &inventory, 0, inventory.size - room);
            removed -= inventory.size;
            cache_shared_add_size(cache, (int64_t)((uint64_t)inventory.size - (uint64_t)before));
            atomic_store(&cache->shared->counted, true);
            free(inventory.items);
        }
    }
    if (lock >= 0)
        close(lock);
    return removed;
}

void cache_evict_trim(const struct cache *cache)
{
    trim(cache, 0);
}

bool cache_evict_make_room(const struct cache *cache, uint64_t bytes)
{
    return trim(cache, (int64_t)bytes) > 0;
}

/* Many processes may write at once; the first that is done trims. */
uint64_t cache_evict_limit(const struct cache *cache)
{
    return cache->limit * 3 / 2;
}

/* The shared size may be wrong: a process that was killed while it wrote has counted bytes that no
 * entry has, and the shared file may have been damaged. */
bool cache_evict_is_due(const struct cache *cache)
{
    return !atomic_load(&cache->shared->counted) || atomic_load(&cache->shared->size) < 0 ||
           cache_shared_size(cache) > cache_evict_limit(cache);
}
