/* Byte ranges (RFC 9110, section 14). */
#ifndef COMMON_HTTP_RANGE_H
#define COMMON_HTTP_RANGE_H

#include "common/base/text.h"

#define RANGE_LIMIT 32

/* Bytes from `first` to just before `end`. */
struct range {
    uint64_t first;
    uint64_t end;
};

/* Reads a Range field for a representation of `size` bytes. Returns how many ranges to
 * send, merged where they overlap; 0 if the field must be ignored (malformed, another unit, or more
 * than RANGE_LIMIT ranges); -1 if none can be satisfied. */
int range_read(struct text value, uint64_t size, struct range ranges[RANGE_LIMIT]);

#endif
