/* pace: how fast connections were accepted at the beginning of a run, beside the rest of it. */
#ifndef COLLECT_PACE_H
#define COLLECT_PACE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PACE_LOOKS = 1024,
    PACE_BYTES = 8192,
    /* Of fewer connections, or fewer looks at the first tenth of them, nothing is said. */
    PACE_CONNECTIONS_LEAST = 100,
    PACE_LOOKS_LEAST = 3
};

/* The time between two looks, as long as there is room for all. */
static const double PACE_SECONDS = 0.01;

struct pace_look {
    double time;
    long long accepted;
};

struct pace {
    struct pace_look looks[PACE_LOOKS];
    int count;
    /* The time between two looks, in seconds. */
    double interval;
};

/* Returns how many TCP connections this network namespace has accepted; -1 if it does not tell. */
static inline long long pace_accepted(void)
{
    char text[PACE_BYTES];
    int file = open("/proc/net/snmp", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *names = strstr(text, "\nTcp:");
    const char *values = names ? strstr(names + 1, "\nTcp:") : NULL;
    /* RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens */
    long long passive;
    if (!values || sscanf(values, "\nTcp: %*d %*d %*d %*d %*d %lld", &passive) != 1)
        return -1;
    return passive;
}

/* Looks at the counter, if it is time. When there is no room every second look is forgotten. */
static inline void pace_look(struct pace *pace, double now)
{
    if (pace->count > 0 && now - pace->looks[pace->count - 1].time < pace->interval)
        return;
    if (pace->count == PACE_LOOKS) {
        for (int i = 0; i < PACE_LOOKS / 2; i++)
            pace->looks[i] = pace->looks[2 * i];
        pace->count = PACE_LOOKS / 2;
        pace->interval *= 2;
    }
    pace->looks[pace->count++] = (struct pace_look){now, pace_accepted()};
}

/* Returns the first look with at least so many connections. */
static inline int pace_reached(const struct pace *pace, double accepted)
{
    int i = 0;
    while (i < pace->count - 1 && (double)pace->looks[i].accepted < accepted)
        i++;
    return i;
}

/* Returns the rate of the first tenth of the connections by that of the rest; 0 if it is unknown.
 */
static inline double pace_first_tenth(const struct pace *pace)
{
    if (pace->count < 2 * PACE_LOOKS_LEAST || pace->looks[0].accepted < 0)
        return 0;
    double none = (double)pace->looks[0].accepted;
    double all = (double)pace->looks[pace->count - 1].accepted;
    double tenth = none + (all - none) / 10;
    int first = pace_reached(pace, none + 1), last = pace_reached(pace, all);
    int at = pace_reached(pace, tenth);
    if (all - none < PACE_CONNECTIONS_LEAST || at - first < PACE_LOOKS_LEAST || last <= at)
        return 0;
    const struct pace_look *before = &pace->looks[at - 1], *after = &pace->looks[at];
    double share =
        (tenth - (double)before->accepted) / (double)(after->accepted - before->accepted);
    double when = before->time + share * (after->time - before->time);
    double begin = (tenth - (double)pace->looks[first].accepted) / (when - pace->looks[first].time);
    double rest = (all - tenth) / (pace->looks[last].time - when);
    return begin / rest;
}

#endif
