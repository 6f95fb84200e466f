/* Entries that are being written: other requests may send them to their clients as they grow. The
 * table that the processes share says which file such an entry has, and the beginning of the file,
 * where its header will be, says what it is. */
#ifndef COMMON_PROXY_CACHE_GROWING_H
#define COMMON_PROXY_CACHE_GROWING_H

#include "common/proxy/cache_entry.h"
#include "common/proxy/cache_writer.h"

/* The length of a body that ends with its last chunk or with the connection. */
#define CACHE_GROWING_UNKNOWN UINT64_MAX

/* Shows the entry to those who wait for the lock of that name. `length` is that of the whole body.
 */
void cache_growing_show(const struct cache *cache, const struct cache_writer *writer,
                        const char *name, uint64_t length);
/* Tells those who read it that it has grown. */
void cache_growing_tell(const struct cache *cache, const struct cache_writer *writer);
/* Tells them that it is whole, or that no more will come. Returns false if it cannot: then
 * nothing may be written behind the body, since they would take it for a part of the body. */
bool cache_growing_end(const struct cache *cache, const struct cache_writer *writer, bool whole);

/* Opens the entry that is shown under that name. Returns false if there is none, if it is for
 * requests with other fields, or if entries of the URI were removed since it was requested. */
bool cache_growing_open(const struct cache *cache, const char *name, struct text uri,
                        struct text request_fields, struct cache_entry *entry);

enum cache_growing_state {
    CACHE_GROWING_GROWS,
    CACHE_GROWING_WHOLE,
    CACHE_GROWING_LOST, /* its writer has given it up, or died */
};

/* Returns how far the body has come. `length` becomes the number of bytes that are there, even if
 * the rest is lost. If `thorough`, looks whether the writer lives. */
enum cache_growing_state cache_growing_look(const struct cache_entry *entry, bool thorough,
                                            uint64_t *length);

#endif
