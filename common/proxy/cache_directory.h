/* A cache of responses in a directory that any number of processes and threads share. Including
 * this gives the whole cache: entries, their writer, and the locks of fetches. */
#ifndef COMMON_PROXY_CACHE_DIRECTORY_H
#define COMMON_PROXY_CACHE_DIRECTORY_H

#include "common/proxy/cache_entry.h"
#include "common/proxy/cache_shared.h"
#include "common/proxy/cache_writer.h"
#include "common/proxy/fetch_lock.h"

/* Opens the cache in that directory; `path` is for messages. On failure it prints why and returns
 * false. */
bool cache_open_directory(struct cache *cache, int directory, const char *path, uint64_t limit);
/* As cache_open_directory(), but makes the directory if there is none. */
bool cache_open(struct cache *cache, const char *path, uint64_t limit);
void cache_close(struct cache *cache);

enum cache_found {
    CACHE_NOTHING,
    CACHE_OTHER, /* only responses to requests with other fields */
    CACHE_FOUND,
};

/* Looks for the response to a request. `name` becomes the name that its entry has, or would have.
 */
enum cache_found cache_find(const struct cache *cache, struct text uri, struct text request_fields,
                            struct cache_entry *entry, char name[CACHE_NAME_SIZE]);

/* Removes all responses to the URI. */
void cache_remove(const struct cache *cache, struct text uri);
/* Returns the count of removals. A record holds the count from before the origin was asked: if the
 * URI was removed since, the response may be older than what caused the removal, and is not stored.
 */
uint64_t cache_uri_removals(const struct cache *cache, struct text uri);
bool cache_uri_removed_since(const struct cache *cache, struct text uri, uint64_t removals);

#endif
