/* Tests of memory_return.c: when memory is given back after many connections. */
#include "common/base/memory_return.h"

#include "tests/unit.h"

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

int main(void)
{
    unit_add("few connections leave nothing to give back", check_few, NULL);
    unit_add("memory is given back a second after many became few", check_return, NULL);
    unit_add("memory is kept while many come again", check_again, NULL);
    return unit_run("memory_return");
}
