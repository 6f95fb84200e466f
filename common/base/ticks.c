/* Reads the time from the processor, where the kernel trusts its counter as a clock. */
#include "common/base/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

/* clock_gettime() reads the same counter, but by two pages that each child of fork() has to map. */
#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static uint64_t monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#ifdef __x86_64__
/* The processor may read its counter before earlier instructions have ended, and a later reading
 * would be lower than an earlier one: the fence makes it wait for them. */
static uint64_t counter(void)
{
    _mm_lfence();
    return __rdtsc();
}

static bool has_counter(void)
{
    const char *wanted = "tsc\n";
    char name[8] = "";
    int file = open(CLOCK_SOURCE, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return false;
    if (read(file, name, sizeof name - 1) < 0)
        name[0] = '\0';
    close(file);
    return strcmp(name, wanted) == 0;
}
#else
static uint64_t counter(void)
{
    return 0;
}

static bool has_counter(void)
{
    return false;
}
#endif

struct ticks ticks_start(void)
{
    struct ticks start = {.direct = has_counter(), .nanoseconds = monotonic()};

    start.ticks = start.direct ? counter() : start.nanoseconds;
    return start;
}

uint64_t ticks_now(const struct ticks *start)
{
    return start->direct ? counter() : monotonic();
}

double ticks_nanoseconds(const struct ticks *start)
{
    uint64_t nanoseconds = monotonic() - start->nanoseconds;
    uint64_t ticks = ticks_now(start) - start->ticks;

    return ticks > 0 && nanoseconds > 0 ? (double)nanoseconds / (double)ticks : 1;
}
