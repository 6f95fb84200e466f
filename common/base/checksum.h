/* A checksum of 64 bits: it tells bytes that were damaged, and names that differ, apart. It is no
 * protection against whoever chooses the bytes. */
#ifndef COMMON_BASE_CHECKSUM_H
#define COMMON_BASE_CHECKSUM_H

#include "common/base/text.h"

struct checksum {
    uint64_t lanes[4];
    uint64_t length;
    unsigned char rest[32]; /* the last bytes, that are fewer than 32 */
};

void checksum_start(struct checksum *checksum, uint64_t seed);
void checksum_add(struct checksum *checksum, struct text bytes);
/* Of all bytes added. */
uint64_t checksum_end(const struct checksum *checksum);

#endif
