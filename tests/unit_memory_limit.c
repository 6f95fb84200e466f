/* Tests of memory_limit.c: the limit of a control group of either version, of its parents, and in a
 * container. */
#include "common/base/memory_limit.h"

#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[] = "/tmp/memory-limit-XXXXXX";

static void put(const char *name, const char *content)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", place, name);
    for (char *slash = path + sizeof place; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "we");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static uint64_t limit_with(const char *groups)
{
    char path[256];

    put("groups", groups);
    snprintf(path, sizeof path, "%s/groups", place);
    return memory_limit_in(path, place);
}

static void test_version_2(void **state)
{
    (void)state;
    put("a/b/memory.max", "max\n");
    assert_true(limit_with("0::/a/b\n") == UINT64_MAX);
    put("a/memory.max", "4096\n");
    assert_int_equal(limit_with("0::/a/b\n"), 4096);
    put("a/b/memory.max", "1000\n");
    assert_int_equal(limit_with("0::/a/b\n"), 1000);
    assert_int_equal(limit_with("0::/a/b/gone\n"), 1000);
    assert_true(limit_with("0::/\n") == UINT64_MAX);
    put("memory.max", "77\n");
    assert_int_equal(limit_with("0::/\n"), 77);
    assert_int_equal(limit_with("0::/of/the/host\n"), 77);
    put("memory.max", "max\n");
}

static void test_version_1(void **state)
{
    (void)state;
    put("memory/x/memory.limit_in_bytes", "33554432\n");
    assert_int_equal(limit_with("9:pids:/y\n4:cpu,memory:/x\n0::/\n"), 33554432);
    assert_int_equal(limit_with("4:memory:/x/y\n"), 33554432);
    assert_true(limit_with("4:memory2,xmemory:/x\n") == UINT64_MAX);
    assert_true(limit_with("4:memory:/z\n") == UINT64_MAX);
}

static void test_nothing(void **state)
{
    (void)state;
    assert_true(limit_with("") == UINT64_MAX);
    assert_true(limit_with("nonsense\n1:memory\n") == UINT64_MAX);
    assert_true(memory_limit_in("/no/such/file", place) == UINT64_MAX);
}

int main(void)
{
    char command[64];
    int failed;

    if (mkdtemp(place) == NULL)
        return 1;
    unit_add("a limit of control groups of version 2 is found", test_version_2, NULL);
    unit_add("a limit of control groups of version 1 is found", test_version_1, NULL);
    unit_add("without a control group there is no limit", test_nothing, NULL);
    failed = unit_run("memory_limit");
    snprintf(command, sizeof command, "rm -rf %s", place);
    return system(command) != 0 || failed;
}
