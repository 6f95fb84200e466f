/* The checksums of the blocks of a body. They stand behind the body, so that each block can be
 * checked by itself, when it is used. A server remembers which blocks it has found sound. */
#ifndef COMMON_PROXY_BLOCK_CHECKSUMS_H
#define COMMON_PROXY_BLOCK_CHECKSUMS_H

#include "common/base/checksum.h"
#include "common/proxy/cache_file.h"
#include "common/proxy/cache_name.h"

#include <stdatomic.h>

#define CHECKSUM_BLOCK_BYTES UINT64_C(32768)

/* Returns the bytes of the checksums behind a body of that length. */
uint64_t block_checksums_size(uint64_t length);

/* ---- writing ---- */

struct block_checksums {
    uint64_t seed; /* of the first block's checksum; that of the next is greater by one */
    uint64_t *sums;
    size_t count, capacity;
    struct checksum sum; /* of the block that is not full yet */
};

void block_checksums_start(struct block_checksums *blocks, uint64_t seed);
/* Adds bytes of the body. Returns false if there is no memory. */
bool block_checksums_add(struct block_checksums *blocks, struct text data);
/* Returns the checksums that are to be written behind the body, which is whole now. */
bool block_checksums_finish(struct block_checksums *blocks, struct text *sums);
void block_checksums_end(struct block_checksums *blocks);

/* ---- checking ---- */

/* A body in a file. */
struct cache_body {
    const struct cache *cache;
    int file;
    uint64_t start, length;
    uint64_t seed;
    uint64_t identity;          /* of the file as it is now; 0: it has just been written */
    char name[CACHE_NAME_SIZE]; /* of the entry */
};

uint64_t block_checksums_identity(const struct stat *status, uint64_t seed);
/* Returns true if the bytes are the block of that number, whose checksum is `sum`. */
bool block_checksums_match(uint64_t seed, uint64_t number, struct text bytes, const void *sum);

/* Returns how many of the `wanted` bytes of the body from `offset` on are sound for certain: at
 * least one. Returns 0 if they are damaged, and removes the entry; 0, too, if there is no memory.
 */
uint64_t block_checksums_check(const struct cache_body *body, uint64_t offset, uint64_t wanted);

/* Makes and frees the memory of blocks that were found sound, which all processes of a server
 * share. A server without it checks a block each time. */
_Atomic uint64_t *block_checksums_make_memory(void);
void block_checksums_free_memory(_Atomic uint64_t *memory);

#endif
