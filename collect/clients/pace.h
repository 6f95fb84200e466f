/* pace: the rate of accepted connections at the beginning of a run, beside that of the rest. */
#ifndef COLLECT_PACE_H
#define COLLECT_PACE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PACE_SAMPLES = 128,
    PACE_BYTES = 8192,
    /* With fewer connections, or fewer samples in their first tenth, the result is unknown. */
    PACE_CONNECTIONS_LEAST = 100,
    PACE_SAMPLES_LEAST = 3
};

/* The time between two samples, as long as there is room for all. A sample takes some 25 µs. */
static const double PACE_SECONDS = 0.002;

struct pace_sample {
    double time;
    long long accepted;
};

struct pace {
    struct pace_sample samples[PACE_SAMPLES];
    int count;
    /* The time between two samples, in seconds. */
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

/* Samples the counter, if it is time. When there is no room, every second sample is dropped. */
static inline void pace_sample(struct pace *pace, double now)
{
    if (pace->count > 0 && now - pace->samples[pace->count - 1].time < pace->interval)
        return;
    if (pace->count == PACE_SAMPLES) {
        for (int i = 0; i < PACE_SAMPLES / 2; i++)
            pace->samples[i] = pace->samples[2 * i];
        pace->count = PACE_SAMPLES / 2;
        pace->interval *= 2;
    }
    pace->samples[pace->count++] = (struct pace_sample){now, pace_accepted()};
}

/* Returns the first sample with at least this many connections. */
static inline int pace_reached(const struct pace *pace, double accepted)
{
    int i = 0;
    while (i < pace->count - 1 && (double)pace->samples[i].accepted < accepted)
        i++;
    return i;
}

/* Returns the rate of the first tenth of the connections by that of the rest; 0 if it is unknown.
 */
static inline double pace_first_tenth(const struct pace *pace)
{
    if (pace->count < 2 * PACE_SAMPLES_LEAST || pace->samples[0].accepted < 0)
        return 0;
    double none = (double)pace->samples[0].accepted;
    double all = (double)pace->samples[pace->count - 1].accepted;
    double tenth = none + (all - none) / 10;
    int first = pace_reached(pace, none + 1), last = pace_reached(pace, all);
    int at = pace_reached(pace, tenth);
    if (all - none < PACE_CONNECTIONS_LEAST || at - first < PACE_SAMPLES_LEAST || last <= at)
        return 0;
    const struct pace_sample *before = &pace->samples[at - 1], *after = &pace->samples[at];
    double share =
        (tenth - (double)before->accepted) / (double)(after->accepted - before->accepted);
    double when = before->time + share * (after->time - before->time);
    double begin =
        (tenth - (double)pace->samples[first].accepted) / (when - pace->samples[first].time);
    double rest = (all - tenth) / (pace->samples[last].time - when);
    return begin / rest;
}

#endif
