/* Tools that the programs of the study share: the clock, numbers of a command line, epoll. */
#ifndef COLLECT_TOOL_H
#define COLLECT_TOOL_H

#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
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

/* Has epoll watch a socket: `change` is EPOLL_CTL_ADD or EPOLL_CTL_MOD. */
static inline void tool_watch(int epoll, int socket, uint32_t events, int change, void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = owner};
    if (epoll_ctl(epoll, change, socket, &event) < 0)
        err(1, "epoll");
}

#endif
