/* Tests of memory_limit.c: the limit of a control group of either version, of its parents, and in a
 * container; and how much of it is left. */
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

static bool is_low(const char *groups)
{
    struct memory_gauge gauge;
    char path[256];
    bool low;

    put("groups", groups);
    snprintf(path, sizeof path, "%s/groups", place);
    memory_gauge_open_in(&gauge, path, place);
    low = memory_gauge_is_low(&gauge);
    if (gauge.usage >= 0)
        close(gauge.usage);
    if (gauge.details >= 0)
        close(gauge.details);
    return low;
}

/* An eighth of 8000 is 1000. */
static void test_gauge(void **state)
{
    (void)state;
    put("g/memory.max", "8000\n");
    put("g/memory.current", "7000\n");
    assert_false(is_low("0::/g/below\n")); /* its details are not known */
    put("g/memory.stat", "anon 5000\ninactive_file 0\nactive_file 0\n");
    assert_false(is_low("0::/g/below\n"));
    put("g/memory.current", "7001\n");
    assert_true(is_low("0::/g/below\n"));
    put("g/memory.stat", "anon 5000\ninactive_file 600\nactive_file 401\n");
    assert_false(is_low("0::/g\n"));
    put("memory/g/memory.limit_in_bytes", "8000\n");
    put("memory/g/memory.usage_in_bytes", "7100\n");
    put("memory/g/memory.stat", "cache 0\nactive_file 500\ntotal_inactive_file 0\n"
                                "total_active_file 99\n");
    assert_true(is_low("4:memory:/g\n"));
    put("memory/g/memory.stat", "cache 0\nactive_file 0\ntotal_inactive_file 50\n"
                                "total_active_file 50\n");
    assert_false(is_low("4:memory:/g\n"));
    assert_false(is_low("0::/\n"));
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
    unit_add("memory is low without what the kernel keeps of files", test_gauge, NULL);
    failed = unit_run("memory_limit");
    snprintf(command, sizeof command, "rm -rf %s", place);
    return system(command) != 0 || failed;
}
