/* Tools that the programs of the study share: the clock, the command line, descriptors, epoll. */
#ifndef COLLECT_TOOL_H
#define COLLECT_TOOL_H

#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

/* Returns the monotonic time in seconds. */
static inline double tool_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The same in nanoseconds. */
static inline int64_t tool_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Reads a number of the command line. A wrong one ends the program; `what` names it. */
static inline long tool_number(const char *text, long least, long most, const char *what)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        errx(2, "%s is a number from %ld to %ld, not '%s'", what, least, most, text);
    return value;
}

/* The same for a number that need not be whole. */
static inline double tool_decimal(const char *text, double least, double most, const char *what)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        errx(2, "%s is a number from %g to %.0f, not '%s'", what, least, most, text);
    return value;
}

/* A client makes requests for paths in a room of its own. */
#define TOOL_PATH_MOST 400

/* Returns the path if it fits there. */
static inline const char *tool_path(const char *text)
{
    if (strlen(text) > TOOL_PATH_MOST)
        errx(2, "a path has at most %d bytes, not %zu", TOOL_PATH_MOST, strlen(text));
    return text;
}

/* Raises the limit of descriptors, for so many connections and some files. */
static inline void tool_allow_connections(long count)
{
    const rlim_t wanted = (rlim_t)count + 16;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    if (limit.rlim_max < wanted)
        errx(1,
             "%ld connections need a limit of %llu descriptors; it is %llu: ask for fewer, or "
             "raise it by ulimit -Hn",
             count, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Has epoll watch a socket: `change` is EPOLL_CTL_ADD or EPOLL_CTL_MOD. */
static inline void tool_watch(int epoll, int socket, uint32_t events, int change, void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = owner};
    if (epoll_ctl(epoll, change, socket, &event) < 0)
        err(1, "epoll");
}

#endif
