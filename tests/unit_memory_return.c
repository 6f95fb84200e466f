/* Tests of memory_return.c: when memory is given back after many connections. */
#include "common/base/memory_return.h"

#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(5000)

static void check_few(void **state)
{
    struct memory_return memory = {0};

    (void)state;
    for (int64_t count = 0; count < 8; count++)
        assert_int_equal(memory_return_review(&memory, count, NOW), -1);
}

static void check_return(void **state)
{
    struct memory_return memory = {.threads = true};

    (void)state;
    memory_return_note(&memory, 800);
    assert_int_equal(memory_return_review(&memory, 101, NOW), 1000);
    assert_int_equal(memory_return_review(&memory, 100, NOW + 5000), 1000);
    assert_int_equal(memory_return_review(&memory, 90, NOW + 5999), 1000);
    assert_int_equal(memory_return_review(&memory, 90, NOW + 6000), -1);
    assert_int_equal(memory.most, 90);
}

/* Many come again before the memory is given back. */
static void check_again(void **state)
{
    struct memory_return memory = {0};

    (void)state;
    assert_int_equal(memory_return_review(&memory, 800, NOW), 1000);
    assert_int_equal(memory_return_review(&memory, 10, NOW + 1), 1000);
    assert_int_equal(memory_return_review(&memory, 500, NOW + 900), 1000);
    assert_int_equal(memory_return_review(&memory, 10, NOW + 1100), 1000);
    assert_int_equal(memory_return_review(&memory, 10, NOW + 2099), 1000);
    assert_int_equal(memory_return_review(&memory, 10, NOW + 2100), -1);
}

/* Sanitizers have a malloc() of their own, which keeps freed memory in ways of its own. */
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define WITH_MALLOC_OF_LIBRARY
#endif

#ifdef WITH_MALLOC_OF_LIBRARY
#define PIECES 100000

/* Returns the memory of this process that is not of a file, in KiB. */
static long anonymous(void)
{
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib = 0;

    assert_non_null(rollup);
    while (fgets(line, sizeof line, rollup) != NULL)
        if (strncmp(line, "Anonymous:", 10) == 0)
            kib = strtol(line + 10, NULL, 10);
    fclose(rollup);
    return kib;
}

static void *piece[PIECES];

/* Takes many small pieces, and frees them in another order. Returns what the process has then. */
static long left_behind(bool pieces)
{
    struct memory_return memory = {.pieces = pieces};

    for (size_t i = 0; i < PIECES; i++) {
        piece[i] = malloc(24 + i * 7919 % 1000);
        assert_non_null(piece[i]);
        memset(piece[i], 1, 24);
    }
    for (size_t i = 0; i < PIECES; i++)
        free(piece[i * 7919 % PIECES]);
    assert_int_equal(memory_return_review(&memory, 800, NOW), 1000);
    assert_int_equal(memory_return_review(&memory, 0, NOW + 1), 1000);
    assert_int_equal(memory_return_review(&memory, 0, NOW + 1001), -1);
    return anonymous();
}

static void check_pieces(void **state)
{
    long before, without, with;

    (void)state;
    memset(piece, 1, sizeof piece);
    before = anonymous();
    without = left_behind(false) - before;
    with = left_behind(true) - before;
    assert_true(without > 400);
    assert_true(with < without / 2);
}
#endif

int main(void)
{
    unit_add("few connections leave nothing to give back", check_few, NULL);
    unit_add("memory is given back a second after many became few", check_return, NULL);
    unit_add("memory is kept while many come again", check_again, NULL);
#ifdef WITH_MALLOC_OF_LIBRARY
    unit_add("small pieces that lie scattered are given back, too", check_pieces, NULL);
#endif
    return unit_run("memory_return");
}
