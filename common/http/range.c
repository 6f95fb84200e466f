/* Parses byte ranges, and merges those that overlap or almost touch. */
#include "common/http/range.h"

#include <string.h>

/* Two ranges with a gap below this are longer as two parts than as one. */
#define PART_OVERHEAD 80

/* Reads a number; one that is too large becomes UINT64_MAX. */
static bool read_digits(struct text digits, uint64_t *number)
{
    for (size_t i = 0; i < digits.length; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
    if (!text_number(digits, number))
        *number = UINT64_MAX;
    return digits.length > 0;
}

/* Reads "first-last", "first-" or "-count". */
static bool read_one(struct text spec, uint64_t size, struct range *range)
{
    size_t dash = text_find(spec, '-');
    struct text first, last;
    uint64_t number;

    if (dash == spec.length)
        return false;
    first = (struct text){spec.data, dash};
    last = (struct text){spec.data + dash + 1, spec.length - dash - 1};
    if (first.length == 0) {
        if (!read_digits(last, &number))
            return false;
        *range = (struct range){number < size ? size - number : 0, number > 0 ? size : 0};
        return true;
    }
    if (!read_digits(first, &range->first))
        return false;
    range->end = size;
    if (last.length == 0)
        return true;
    if (!read_digits(last, &number) || number < range->first)
        return false;
    if (number < size)
        range->end = number + 1;
    return true;
}

/* Adds a range, and merges it with those that it overlaps or almost touches. */
static int merge(struct range *ranges, int count, struct range added)
{
    for (int i = 0; i < count;) {
        if (added.first <= ranges[i].end + PART_OVERHEAD &&
            ranges[i].first <= added.end + PART_OVERHEAD) {
            if (ranges[i].first < added.first)
                added.first = ranges[i].first;
            if (ranges[i].end > added.end)
                added.end = ranges[i].end;
            count--;
            memmove(&ranges[i], &ranges[i + 1], (size_t)(count - i) * sizeof *ranges);
            i = 0;
        } else {
            i++;
        }
    }
    ranges[count] = added;
    return count + 1;
}

int range_read(struct text value, uint64_t size, struct range ranges[RANGE_LIMIT])
{
    const struct text unit = TEXT("bytes=");
    struct text spec;
    int count = 0, specs = 0;

    if (value.length < unit.length || !text_same((struct text){value.data, unit.length}, unit))
        return 0;
    value.data += unit.length;
    value.length -= unit.length;
    while (text_next(&value, &spec)) {
        struct range range;
        if (++specs > RANGE_LIMIT || !read_one(spec, size, &range))
            return 0;
        if (range.first < range.end)
            count = merge(ranges, count, range);
    }
    if (specs == 0)
        return 0;
    return count > 0 ? count : -1;
}
