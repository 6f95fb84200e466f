/* Writes an entry of the cache. The entry appears when it is committed, whole or not at all. */
#ifndef COMMON_PROXY_CACHE_WRITER_H
#define COMMON_PROXY_CACHE_WRITER_H

#include "common/proxy/cache_entry.h"

struct cache_writer {
    struct cache_header header;
    int file;          /* -1: none */
    bool committed;    /* the entry has appeared */
    bool unnamed;      /* the file has no name yet */
    uint64_t start;    /* of the body in the file */
    uint64_t counted;  /* bytes of it that are added to the size of the cache */
    uint64_t number;   /* that removals of its URI are noted under, */
    uint64_t removals; /* and their count when the origin was asked */
    struct block_checksums blocks;
    struct buffer held;              /* the beginning of the file */
    bool holds;                      /* it is not written yet */
    char name[CACHE_NAME_SIZE];      /* of the entry */
    char temporary[CACHE_NAME_SIZE]; /* of the file until it is committed */
};

/* Begins an entry; that of a 206 is a part. The record's `selected` is taken from the request's
 * fields. Returns false if the entry cannot be stored. */
bool cache_writer_begin(const struct cache *cache, struct cache_writer *writer,
                        const struct cache_record *record, struct text request_fields);
/* The same for a body of this length, for which room is reserved at once. It is held in memory
 * until cache_writer_commit() or cache_writer_flush() writes it in one call. */
bool cache_writer_begin_short(const struct cache *cache, struct cache_writer *writer,
                              const struct cache_record *record, struct text request_fields,
                              size_t length);
/* Returns the room behind what is held, where the next bytes of the body may be received, before
 * they are added; none if nothing is held. */
struct buffer cache_writer_room(const struct cache_writer *writer);
/* Returns the body as far as it is held, written or not; without data: it is in the file. */
struct text cache_writer_held(const struct cache_writer *writer);
/* Writes what is held, and forgets it. Returns false if it cannot: then it is still held. */
bool cache_writer_flush(const struct cache *cache, struct cache_writer *writer);
/* Frees what is held. */
void cache_writer_forget(struct cache_writer *writer);
/* Gives the file its temporary name, by which others open it. */
bool cache_writer_name(const struct cache *cache, struct cache_writer *writer);
/* Adds to the body. Returns false if there is no room for it; if the body is held, the bytes are
 * held all the same. */
bool cache_writer_add(const struct cache *cache, struct cache_writer *writer, struct text data);
/* Makes the entry appear in place of an older one. Its file stays open. */
bool cache_writer_commit(const struct cache *cache, struct cache_writer *writer);
/* Closes the file, and removes it if it is not committed. */
void cache_writer_end(const struct cache *cache, struct cache_writer *writer);

/* Replaces an entry by one with another record and the same body. */
bool cache_writer_update(const struct cache *cache, const struct cache_entry *entry,
                         const struct cache_record *record, struct text request_fields);

#endif
