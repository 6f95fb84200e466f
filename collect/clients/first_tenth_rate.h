/* The rate of accepted connections in the first tenth of a run, beside that of the rest. */
#ifndef COLLECT_FIRST_TENTH_RATE_H
#define COLLECT_FIRST_TENTH_RATE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FIRST_TENTH_SAMPLES = 128,
    FIRST_TENTH_BYTES = 8192,
    /* With fewer connections, or fewer samples in their first tenth, the result is unknown. */
    FIRST_TENTH_CONNECTIONS_LEAST = 100,
    FIRST_TENTH_SAMPLES_LEAST = 3
};

/* The time between two samples, as long as there is room for all. A sample takes some 25 µs. */
static const double FIRST_TENTH_SECONDS = 0.002;

struct first_tenth_sample {
    double time;
    long long accepted;
};

struct first_tenth {
    struct first_tenth_sample samples[FIRST_TENTH_SAMPLES];
    int count;
    /* The time between two samples, in seconds. */
    double interval;
};

/* Returns how many TCP connections this network namespace has accepted; -1 if it does not tell. */
static inline long long first_tenth_accepted(void)
{
    char text[FIRST_TENTH_BYTES];
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
static inline void first_tenth_sample(struct first_tenth *rates, double now)
{
    if (rates->count > 0 && now - rates->samples[rates->count - 1].time < rates->interval)
        return;
    if (rates->count == FIRST_TENTH_SAMPLES) {
        for (int i = 0; i < FIRST_TENTH_SAMPLES / 2; i++)
            rates->samples[i] = rates->samples[2 * i];
        rates->count = FIRST_TENTH_SAMPLES / 2;
        rates->interval *= 2;
    }
    rates->samples[rates->count++] = (struct first_tenth_sample){now, first_tenth_accepted()};
}

/* Returns the first sample with at least this many connections. */
static inline int first_tenth_reached(const struct first_tenth *rates, double accepted)
{
    int i = 0;
    while (i < rates->count - 1 && (double)rates->samples[i].accepted < accepted)
        i++;
    return i;
}

/* Returns the rate of the first tenth of the connections, divided by that of the rest; 0 if it is
 * unknown. */
static inline double first_tenth_ratio(const struct first_tenth *rates)
{
    if (rates->count < 2 * FIRST_TENTH_SAMPLES_LEAST || rates->samples[0].accepted < 0)
        return 0;
    double none = (double)rates->samples[0].accepted;
    double all = (double)rates->samples[rates->count - 1].accepted;
    double tenth = none + (all - none) / 10;
    int first = first_tenth_reached(rates, none + 1), last = first_tenth_reached(rates, all);
    int at = first_tenth_reached(rates, tenth);
    if (all - none < FIRST_TENTH_CONNECTIONS_LEAST || at - first < FIRST_TENTH_SAMPLES_LEAST ||
        last <= at)
        return 0;
    const struct first_tenth_sample *before = &rates->samples[at - 1], *after = &rates->samples[at];
    double share =
        (tenth - (double)before->accepted) / (double)(after->accepted - before->accepted);
    double when = before->time + share * (after->time - before->time);
    double begin =
        (tenth - (double)rates->samples[first].accepted) / (when - rates->samples[first].time);
    double rest = (all - tenth) / (rates->samples[last].time - when);
    return begin / rest;
}

#endif
