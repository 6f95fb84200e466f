/* Writes the checksums of the blocks of a body, and checks blocks before they are used. */
#include "common/proxy/block_checksums.h"

#include "common/proxy/cache_evict.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* How many blocks are read and checked in one call: more would hold up an event loop. */
#define CHECKED_AT_ONCE 8
/* Blocks that the memory holds, at most: a body of 2 GB. */
#define MEMORY_SLOTS 65536
/* More than the resolution of the times of files. */
#define TICK_NANOSECONDS 20000000

static uint64_t count_of(uint64_t length)
{
    return length / CHECKSUM_BLOCK_BYTES + (length % CHECKSUM_BLOCK_BYTES > 0);
}

uint64_t block_checksums_size(uint64_t length)
{
    return count_of(length) * sizeof(uint64_t);
}

/* ---- writing ---- */

void block_checksums_start(struct block_checksums *blocks, uint64_t seed)
{
    *blocks = (struct block_checksums){.seed = seed};
    checksum_start(&blocks->sum, seed);
}

static bool end_block(struct block_checksums *blocks)
{
    if (blocks->count == blocks->capacity) {
        size_t capacity = blocks->capacity * 2 + 8;
        uint64_t *sums = realloc(blocks->sums, capacity * sizeof *sums);
        if (sums == NULL)
            return false;
        blocks->sums = sums;
        blocks->capacity = capacity;
    }
    blocks->sums[blocks->count++] = checksum_end(&blocks->sum);
    checksum_start(&blocks->sum, blocks->seed + blocks->count);
    return true;
}

bool block_checksums_add(struct block_checksums *blocks, struct text data)
{
    while (data.length > 0) {
        size_t room = (size_t)(CHECKSUM_BLOCK_BYTES - blocks->sum.length);
        size_t part = data.length < room ? data.length : room;
        checksum_add(&blocks->sum, (struct text){data.data, part});
        data = (struct text){data.data + part, data.length - part};
        if (part == room && !end_block(blocks))
            return false;
    }
    return true;
}

bool block_checksums_finish(struct block_checksums *blocks, struct text *sums)
{
    if (blocks->sum.length > 0 && !end_block(blocks))
        return false;
    *sums = (struct text){(const char *)blocks->sums, blocks->count * sizeof *blocks->sums};
    return true;
}

void block_checksums_end(struct block_checksums *blocks)
{
    free(blocks->sums);
    blocks->sums = NULL;
}

/* ---- the memory ---- */

_Atomic uint64_t *block_checksums_make_memory(void)
{
    void *memory = mmap(NULL, MEMORY_SLOTS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void block_checksums_free_memory(_Atomic uint64_t *memory)
{
    if (memory != NULL)
        munmap(memory, MEMORY_SLOTS * sizeof *memory);
}

static uint64_t sum_numbers(const uint64_t *numbers, size_t size)
{
    struct checksum sum;

    checksum_start(&sum, 0);
    checksum_add(&sum, (struct text){(const char *)numbers, size});
    return checksum_end(&sum);
}

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* The time of access does not count: each use changes it. A file that was changed just now gets 0,
 * since another change in the same tick of the clock would leave the same time. */
uint64_t block_checksums_identity(const struct stat *status, uint64_t seed)
{
    const uint64_t numbers[] = {
        seed,
        (uint64_t)status->st_ino,
        (uint64_t)status->st_size,
        (uint64_t)nanoseconds(&status->st_mtim),
    };
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (nanoseconds(&now) - nanoseconds(&status->st_mtim) < TICK_NANOSECONDS)
        return 0;
    return sum_numbers(numbers, sizeof numbers);
}

/* Returns the number by which a block is remembered. Two blocks hardly ever have the same one. */
static uint64_t mark_of(const struct cache_body *body, uint64_t number)
{
    return (body->identity ^ number * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static _Atomic uint64_t *slot_of(const struct cache_body *body, uint64_t mark)
{
    return &body->cache->sound_blocks[(mark >> 20) % MEMORY_SLOTS];
}

static bool is_remembered(const struct cache_body *body, uint64_t number)
{
    uint64_t mark = mark_of(body, number);

    return body->identity != 0 && body->cache->sound_blocks != NULL &&
           atomic_load_explicit(slot_of(body, mark), memory_order_relaxed) == mark;
}

static void remember(const struct cache_body *body, uint64_t number)
{
    uint64_t mark = mark_of(body, number);

    if (body->identity != 0 && body->cache->sound_blocks != NULL)
        atomic_store_explicit(slot_of(body, mark), mark, memory_order_relaxed);
}

/* ---- checking ---- */

bool block_checksums_match(uint64_t seed, uint64_t number, struct text bytes, const void *sum)
{
    struct checksum found;
    uint64_t expected;

    memcpy(&expected, sum, sizeof expected);
    checksum_start(&found, seed + number);
    checksum_add(&found, bytes);
    return checksum_end(&found) == expected;
}

static bool is_sound(const struct cache_body *body, uint64_t number)
{
    uint64_t from = number * CHECKSUM_BLOCK_BYTES, left = body->length - from, sum;
    size_t size = (size_t)(left < CHECKSUM_BLOCK_BYTES ? left : CHECKSUM_BLOCK_BYTES);
    char *space = malloc(size);
    bool sound;

    if (space == NULL)
        return false;
    sound = cache_file_read(body->file, space, size, body->start + from) &&
            cache_file_read(body->file, &sum, sizeof sum,
                            body->start + body->length + number * sizeof sum) &&
            block_checksums_match(body->seed, number, (struct text){space, size}, &sum);

    free(space);
    if (sound)
        remember(body, number);
    else
        cache_evict_entry(body->cache, body->name);
    return sound;
}

uint64_t block_checksums_check(const struct cache_body *body, uint64_t offset, uint64_t wanted)
{
    uint64_t number = offset / CHECKSUM_BLOCK_BYTES, sound = 0;

    for (int checked = 0; sound < wanted; number++) {
        if (!is_remembered(body, number) &&
            (checked++ == CHECKED_AT_ONCE || !is_sound(body, number)))
            break;
        sound = (number + 1) * CHECKSUM_BLOCK_BYTES - offset;
    }
    return sound < wanted ? sound : wanted;
}
