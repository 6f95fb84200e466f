/* Small entries that this process has used lately, whole and checked. Each process has its
 * own; a use costs one system call, which finds out whether the file is still the same. */
#ifndef COMMON_PROXY_CACHE_MEMORY_H
#define COMMON_PROXY_CACHE_MEMORY_H

#include "common/base/text.h"
#include "common/proxy/cache_file.h"

/* Gets the memory, which pays where a process serves many connections. Without it, each entry is
 * read at each use. */
void cache_memory_open(struct cache *cache);
void cache_memory_close(struct cache *cache);

/* Keeps the bytes of a file with this identity, which the seed belongs to: see block_checksums.h.
 */
void cache_memory_keep(const struct cache *cache, const char *name, uint64_t identity,
                       uint64_t seed, struct text bytes);
/* Returns a copy of the bytes, for the caller to free, and the state of the file; NULL if the file
 * is not known or has changed. */
char *cache_memory_take(const struct cache *cache, const char *name, struct stat *status);

#endif
