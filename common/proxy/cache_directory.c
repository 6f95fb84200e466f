/* Opens the cache, and finds and removes its entries by their URI. */
#include "common/proxy/cache_directory.h"

#include "common/proxy/block_checksums.h"
#include "common/proxy/cache_evict.h"
#include "common/proxy/cache_keeper.h"
#include "common/proxy/cache_memory.h"
#include "common/proxy/cache_name.h"
#include "common/proxy/cache_removal_count.h"
#include "common/proxy/fetch_lock.h"

#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- opening ---- */

bool cache_open_directory(struct cache *cache, int directory, const char *path, uint64_t limit)
{
    int locks;

    *cache = (struct cache){.directory = directory, .owner = geteuid(), .limit = limit};
    locks = cache_file_open(cache, CACHE_NAME_LOCKS, O_RDWR | O_CREAT);
    if (locks < 0 || !cache_shared_open(cache)) {
        warn("cannot write to the cache directory '%s'", path);
        return false;
    }
    close(locks);
    cache->links = cache_file_can_link(cache);
    cache->sound_blocks = block_checksums_make_memory();
    cache_evict_trim(cache);
    return true;
}

bool cache_open(struct cache *cache, const char *path, uint64_t limit)
{
    int directory = cache_file_open_directory(path, geteuid(), getegid());

    *cache = (struct cache){.directory = -1};
    return directory >= 0 && cache_open_directory(cache, directory, path, limit);
}

void cache_close(struct cache *cache)
{
    cache_keeper_close(cache);
    cache_shared_close(cache);
    block_checksums_free_memory(cache->sound_blocks);
    cache_memory_close(cache);
    fetch_lock_close_files(cache);
    if (cache->directory >= 0)
        close(cache->directory);
}

/* ---- finding ---- */

/* Finds, by the index entry of the URI, the entry whose request had the same fields. */
static enum cache_found find_selected(const struct cache *cache, struct text uri,
                                      struct text request_fields, struct cache_entry *entry,
                                      char name[CACHE_NAME_SIZE])
{
    struct cache_entry index = *entry;
    enum cache_found found = CACHE_OTHER;
    struct text selected;
    char *space = cache_entry_select(index.record.list, request_fields, &selected);

    cache_entry_touch(cache,
                      &index); /* it must not be evicted before the entries that it leads to */
    *entry = (struct cache_entry){.file = -1};
    if (space != NULL) {
        cache_name_entry(name, uri, index.header.generation, selected);
        if (cache_entry_open(cache, entry, name, uri)) {
            if (entry->header.kind == CACHE_ENTRY_RESPONSE &&
                text_equal(entry->record.selected, selected))
                found = CACHE_FOUND;
            else
                cache_entry_close(entry);
        }
    }
    free(space);
    cache_entry_close(&index);
    return found;
}

enum cache_found cache_find(const struct cache *cache, struct text uri, struct text request_fields,
                            struct cache_entry *entry, char name[CACHE_NAME_SIZE])
{
    cache_name_entry(name, uri, 0, TEXT(""));
    if (!cache_entry_open(cache, entry, name, uri))
        return CACHE_NOTHING;
    if (entry->header.kind == CACHE_ENTRY_RESPONSE)
        return CACHE_FOUND;
    if (entry->header.kind != CACHE_ENTRY_INDEX) {
        cache_entry_close(entry);
        return CACHE_NOTHING;
    }
    return find_selected(cache, uri, request_fields, entry, name);
}

/* ---- removing ---- */

static uint64_t number_of(struct text uri)
{
    char name[CACHE_NAME_SIZE];

    cache_name_entry(name, uri, 0, TEXT(""));
    return cache_name_number(name);
}

uint64_t cache_uri_removals(const struct cache *cache, struct text uri)
{
    return cache_removal_count(cache, number_of(uri));
}

bool cache_uri_removed_since(const struct cache *cache, struct text uri, uint64_t removals)
{
    return cache_removal_since(cache, number_of(uri), removals);
}

void cache_remove(const struct cache *cache, struct text uri)
{
    char name[CACHE_NAME_SIZE], part[CACHE_NAME_SIZE];

    cache_name_entry(name, uri, 0, TEXT(""));
    cache_removal_note(cache, cache_name_number(name));
    cache_evict_entry(cache, name);
    cache_name_other(part, CACHE_NAME_PART, name);
    cache_evict_entry(cache, part);
}
