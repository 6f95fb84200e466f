/* A 64-bit checksum. It detects damaged bytes and tells names apart; it does not withstand somebody
 * who chooses the bytes. */
#ifndef COMMON_BASE_CHECKSUM_H
#define COMMON_BASE_CHECKSUM_H

#include "common/base/text.h"

struct checksum {
    uint64_t lanes[4];
    uint64_t length;
    unsigned char rest[32]; /* bytes of a block that is not full yet */
};

void checksum_start(struct checksum *checksum, uint64_t seed);
void checksum_add(struct checksum *checksum, struct text bytes);
/* Returns the checksum of all bytes added. */
uint64_t checksum_end(const struct checksum *checksum);

#endif
