/* Parts of responses in the cache (RFC 9111, sections 3.3 and 3.4). For a URI there is one at most:
 * one piece of the body, without gaps, of a 206 with a strong ETag and without Vary. Its record has
 * the Content-Range of the piece. */
#ifndef COMMON_PROXY_CACHE_PART_H
#define COMMON_PROXY_CACHE_PART_H

#include "common/http/range.h"
#include "common/proxy/cache_writer.h"

/* Parts are joined by copying, so they are short. */
#define CACHE_PART_LIMIT (4 * 1024 * 1024)

/* The bytes of a body that a part has, and the length of the whole body. */
struct cache_span {
    struct range range;
    uint64_t whole;
};

struct cache_part {
    struct cache_entry entry; /* its file is -1: none */
    struct cache_span span;
};

/* Reads the only Content-Range. Returns false if it is malformed, or if a number is missing. */
bool cache_part_read_span(struct text fields, struct cache_span *span);
/* Returns the ETag of a response; empty if it has none, or a weak one. */
struct text cache_part_tag(struct text fields);

/* Makes the part a closed one, without a file. */
void cache_part_start(struct cache_part *part);
/* Opens the part of a response to the URI. Returns false if there is none. */
bool cache_part_open(const struct cache *cache, struct cache_part *part, struct text uri);
void cache_part_close(struct cache_part *part);
/* Removes its file from the cache, and closes it. */
void cache_part_remove(const struct cache *cache, struct cache_part *part);

/* Returns true if a response with these fields, which has this span, is another part of the same
 * body, and the two make one piece that is not too long. */
bool cache_part_joins(const struct cache_part *part, const struct cache_span *span,
                      struct text fields);
/* Copies bytes of the part, counted in the whole body, to an entry that is being written. Returns
 * false if they are damaged, or if there is no room for them. */
bool cache_part_copy(const struct cache *cache, const struct cache_part *part,
                     struct cache_writer *writer, struct range range);

#define CACHE_PART_FIELD TEXT("Content-Range")
/* Writes that field. */
void cache_part_write_span(const struct cache_span *span, struct buffer *lines);

#endif
