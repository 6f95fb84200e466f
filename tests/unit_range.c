/* Tests of range.c: the bytes that a Range field requests. */
#include "common/http/range.h"

#include "tests/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define IGNORED       0
#define UNSATISFIABLE (-1)

struct range_case {
    const char *name; /* the field value */
    uint64_t size;
    int count;
    struct range ranges[3];
};

/* Ranges that must not be merged are far apart. */
static const struct range_case cases[] = {
    {"bytes=0-0", 10, 1, {{0, 1}}},
    {"bytes=0-9", 10, 1, {{0, 10}}},
    {"bytes=9-9", 10, 1, {{9, 10}}},
    {"bytes=0-", 10, 1, {{0, 10}}},
    {"bytes=9-", 10, 1, {{9, 10}}},
    {"bytes=3-100", 10, 1, {{3, 10}}},
    {"bytes=-1", 10, 1, {{9, 10}}},
    {"bytes=-10", 10, 1, {{0, 10}}},
    {"bytes=-11", 10, 1, {{0, 10}}},
    {"bytes=0-18446744073709551615", 10, 1, {{0, 10}}},
    {"bytes=0-18446744073709551616", 10, 1, {{0, 10}}},
    {"bytes=-18446744073709551615", 10, 1, {{0, 10}}},
    {"bytes=-18446744073709551616", 10, 1, {{0, 10}}},
    {"bytes=-99999999999999999999999999", 10, 1, {{0, 10}}},
    {"bytes=0-0", 1, 1, {{0, 1}}},
    {"bytes=18446744073709551613-", UINT64_MAX, 1, {{UINT64_MAX - 2, UINT64_MAX}}},
    {"bytes=18446744073709551614-18446744073709551614",
     UINT64_MAX,
     1,
     {{UINT64_MAX - 1, UINT64_MAX}}},
    {"bytes=0-18446744073709551615", UINT64_MAX, 1, {{0, UINT64_MAX}}},
    {"BYTES=0-0", 10, 1, {{0, 1}}},
    {"bytes=00-00", 10, 1, {{0, 1}}},

    {"bytes=0-0,5000-5000", 9000, 2, {{0, 1}, {5000, 5001}}},
    {"bytes=0-0 , 5000-5000", 9000, 2, {{0, 1}, {5000, 5001}}},
    {"bytes=0-0\t,\t5000-5000", 9000, 2, {{0, 1}, {5000, 5001}}},
    {"bytes=,0-0,,5000-5000,", 9000, 2, {{0, 1}, {5000, 5001}}},
    {"bytes=0-0,4000-4000,-1", 9000, 3, {{0, 1}, {4000, 4001}, {8999, 9000}}},
    {"bytes=0-0,9000-,5000-5000", 9000, 2, {{0, 1}, {5000, 5001}}},
    {"bytes=9000-,9001-9002,7-7", 9000, 1, {{7, 8}}},
    {"bytes=0-5,3-8", 9000, 1, {{0, 9}}},
    {"bytes=3-8,0-5", 9000, 1, {{0, 9}}},
    {"bytes=0-5,6-8", 9000, 1, {{0, 9}}},
    {"bytes=6-8,0-5", 9000, 1, {{0, 9}}},
    {"bytes=0-8,2-3", 9000, 1, {{0, 9}}},
    {"bytes=2-3,0-8", 9000, 1, {{0, 9}}},
    {"bytes=0-,0-,0-", 9000, 1, {{0, 9000}}},
    {"bytes=0-99,4000-4099,50-4050", 9000, 1, {{0, 4100}}},
    {"bytes=4000-4099,0-99,50-4050", 9000, 1, {{0, 4100}}},
    {"bytes=-1,0-", 9000, 1, {{0, 9000}}},

    {"bytes=10-", 10, UNSATISFIABLE, {{0, 0}}},
    {"bytes=10-11", 10, UNSATISFIABLE, {{0, 0}}},
    {"bytes=-0", 10, UNSATISFIABLE, {{0, 0}}},
    {"bytes=10-,11-,-0", 10, UNSATISFIABLE, {{0, 0}}},
    {"bytes=0-0", 0, UNSATISFIABLE, {{0, 0}}},
    {"bytes=0-", 0, UNSATISFIABLE, {{0, 0}}},
    {"bytes=18446744073709551615-", UINT64_MAX, UNSATISFIABLE, {{0, 0}}},
    {"bytes=18446744073709551616-", 10, UNSATISFIABLE, {{0, 0}}},

    {"", 10, IGNORED, {{0, 0}}},
    {"bytes", 10, IGNORED, {{0, 0}}},
    {"bytes=", 10, IGNORED, {{0, 0}}},
    {"bytes=,", 10, IGNORED, {{0, 0}}},
    {"bytes=-", 10, IGNORED, {{0, 0}}},
    {"bytes=--1", 10, IGNORED, {{0, 0}}},
    {"bytes=-1-", 10, IGNORED, {{0, 0}}},
    {"bytes=1", 10, IGNORED, {{0, 0}}},
    {"bytes=5-4", 10, IGNORED, {{0, 0}}},
    {"bytes=0-0,5-4", 10, IGNORED, {{0, 0}}},
    {"bytes=0-0,", 10, 1, {{0, 1}}},
    {"bytes=0-0,x", 10, IGNORED, {{0, 0}}},
    {"bytes=0-1-2", 10, IGNORED, {{0, 0}}},
    {"bytes=a-b", 10, IGNORED, {{0, 0}}},
    {"bytes=0-b", 10, IGNORED, {{0, 0}}},
    {"bytes=+0-1", 10, IGNORED, {{0, 0}}},
    {"bytes=0x0-1", 10, IGNORED, {{0, 0}}},
    {"bytes=0 -1", 10, IGNORED, {{0, 0}}},
    {"bytes=0- 1", 10, IGNORED, {{0, 0}}},
    {"bytes =0-1", 10, IGNORED, {{0, 0}}},
    {"bytes: 0-1", 10, IGNORED, {{0, 0}}},
    {"lines=0-1", 10, IGNORED, {{0, 0}}},
    {"byte=0-1", 10, IGNORED, {{0, 0}}},
    {"bytess=0-1", 10, IGNORED, {{0, 0}}},
    {"=0-1", 10, IGNORED, {{0, 0}}},
    {"0-1", 10, IGNORED, {{0, 0}}},
    {"bytes=0-1;5-6", 10, IGNORED, {{0, 0}}},
    {"bytes=\"0-1\"", 10, IGNORED, {{0, 0}}},
};

static void check_case(void **state)
{
    const struct range_case *row = *state;
    struct range ranges[RANGE_LIMIT];
    int count = range_read(text_of(row->name), row->size, ranges);

    assert_int_equal(count, row->count);
    for (int i = 0; i < row->count; i++) {
        assert_int_equal(ranges[i].first, row->ranges[i].first);
        assert_int_equal(ranges[i].end, row->ranges[i].end);
    }
}

/* Makes a field of `count` ranges of one byte, far apart. */
static int count_of(int specs)
{
    static char value[64 * 1024];
    struct range ranges[RANGE_LIMIT];
    size_t length = (size_t)snprintf(value, sizeof value, "bytes=");

    for (int i = 0; i < specs; i++)
        length += (size_t)snprintf(value + length, sizeof value - length, "%s%d-%d",
                                   i > 0 ? "," : "", i * 1000, i * 1000);
    return range_read((struct text){value, length}, 10000000, ranges);
}

static void check_limit(void **state)
{
    (void)state;
    assert_int_equal(count_of(1), 1);
    assert_int_equal(count_of(RANGE_LIMIT), RANGE_LIMIT);
    assert_int_equal(count_of(RANGE_LIMIT + 1), IGNORED);
    assert_int_equal(count_of(3000), IGNORED);
}

/* Ranges that are sent never overlap, and their sum is at most the whole. */
static void check_disjoint(void **state)
{
    uint32_t random = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char value[1024];
        struct range ranges[RANGE_LIMIT];
        size_t length = (size_t)snprintf(value, sizeof value, "bytes=");
        uint64_t size = 1 + (uint64_t)(round % 5000), sum = 0;
        int count;

        for (int i = 0; i < 1 + round % RANGE_LIMIT; i++) {
            unsigned first, span;
            random = random * 1664525 + 1013904223;
            first = (random >> 8) % 5000;
            span = (random >> 20) % 300;
            length += (size_t)snprintf(value + length, sizeof value - length, "%u-%u,", first,
                                       first + span);
        }
        count = range_read((struct text){value, length}, size, ranges);
        assert_true(count != IGNORED && count <= RANGE_LIMIT);
        for (int i = 0; i < count; i++) {
            assert_true(ranges[i].first < ranges[i].end && ranges[i].end <= size);
            sum += ranges[i].end - ranges[i].first;
            for (int other = 0; other < i; other++)
                assert_true(ranges[i].first >= ranges[other].end ||
                            ranges[i].end <= ranges[other].first);
        }
        assert_true(sum <= size);
    }
}

int main(void)
{
    UNIT_TABLE(cases, check_case);
    unit_add("the number of ranges is limited", check_limit, NULL);
    unit_add("20,000 random fields give disjoint ranges", check_disjoint, NULL);
    return unit_run("range");
}
