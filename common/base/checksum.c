/* A 64-bit checksum over four lanes of multiplications. */
#include "common/base/checksum.h"

#include <string.h>

/* Digits of pi; the factor is odd. */
#define FACTOR UINT64_C(0x9216d5d98979fb1b)
#define START  UINT64_C(0x243f6a8885a308d3)
#define BLOCK  32

void checksum_start(struct checksum *checksum, uint64_t seed)
{
    *checksum = (struct checksum){0};
    for (unsigned i = 0; i < 4; i++)
        checksum->lanes[i] = (START ^ seed) + i * FACTOR;
}

static uint64_t mix(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * FACTOR;
    return lane ^ lane >> 29;
}

static void add_block(struct checksum *checksum, const unsigned char *bytes)
{
    uint64_t words[4];

    memcpy(words, bytes, BLOCK);
    for (int i = 0; i < 4; i++)
        checksum->lanes[i] = mix(checksum->lanes[i], words[i]);
}

void checksum_add(struct checksum *checksum, struct text bytes)
{
    const unsigned char *data = (const unsigned char *)bytes.data;
    size_t left = bytes.length, begun = checksum->length % BLOCK;

    if (left == 0)
        return;
    checksum->length += left;
    if (begun > 0) {
        size_t part = left < BLOCK - begun ? left : BLOCK - begun;
        memcpy(checksum->rest + begun, data, part);
        data += part;
        left -= part;
        if (begun + part < BLOCK)
            return;
        add_block(checksum, checksum->rest);
    }
    for (; left >= BLOCK; data += BLOCK, left -= BLOCK)
        add_block(checksum, data);
    memcpy(checksum->rest, data, left);
}

uint64_t checksum_end(const struct checksum *checksum)
{
    struct checksum last = *checksum;
    size_t begun = last.length % BLOCK;
    uint64_t sum = last.length;

    memset(last.rest + begun, 0, BLOCK - begun);
    add_block(&last, last.rest);
    for (int i = 0; i < 4; i++)
        sum = mix(sum, last.lanes[i]);
    return mix(sum, sum >> 32);
}
