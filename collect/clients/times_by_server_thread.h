/* Times of requests by the thread of the server that answered them. The service `work` names it at
 * the end of its responses, as "Thread 1234567.". */
#ifndef COLLECT_TIMES_BY_SERVER_THREAD_H
#define COLLECT_TIMES_BY_SERVER_THREAD_H

#include "histogram.h"

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BY_THREAD_MOST = 64 };

struct by_thread {
    bool wanted;
    int count;
    long unnamed;  /* responses that named no thread */
    long too_many; /* those of further threads */
    struct thread_times {
        int thread;
        struct histogram histogram;
    } * all[BY_THREAD_MOST];
};

/* Returns the thread that the end of a response names; 0 if it names none. */
static inline int by_thread_named(const char *bytes, size_t count)
{
    static const char before[] = "Thread ", form[] = "Thread 1234567.\n";
    const size_t name = sizeof before - 1, whole = sizeof form - 1;
    const char *last;

    if (count < whole)
        return 0;
    last = bytes + count - whole;
    return memcmp(last, before, name) == 0 ? atoi(last + name) : 0;
}

/* Counts the time, in microseconds, of a request that this thread answered. */
static inline void by_thread_note(struct by_thread *times, int thread, int64_t time)
{
    int i = 0;

    if (thread == 0) {
        times->unnamed++;
        return;
    }
    while (i < times->count && times->all[i]->thread != thread)
        i++;
    if (i == BY_THREAD_MOST) {
        times->too_many++;
        return;
    }
    if (i == times->count) {
        times->all[i] = calloc(1, sizeof *times->all[i]);
        if (!times->all[i])
            err(1, "no memory for the times of a thread");
        times->all[i]->thread = thread;
        times->count++;
    }
    histogram_note(&times->all[i]->histogram, time);
}

static inline void by_thread_print(const struct by_thread *times)
{
    for (int i = 0; i < times->count; i++) {
        printf("%s{\"thread\": %d, \"answered\": %llu, \"histogram\": \"", i > 0 ? ", " : "",
               times->all[i]->thread, (unsigned long long)times->all[i]->histogram.count);
        histogram_print(&times->all[i]->histogram);
        printf("\"}");
    }
}

static inline void by_thread_free(struct by_thread *times)
{
    for (int i = 0; i < times->count; i++)
        free(times->all[i]);
}

#endif
