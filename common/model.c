/* The ways to accept, and what follows from what a model says about itself. */
#include "common/model.h"

#include "common/base/memory_limit.h"

#include <sched.h>

static const struct {
    const char *name;
    const char *help;
} ways[ACCEPT_WAYS] = {
    [ACCEPT_FEW] = {"few", "as few loops as the load needs wait at one listener"},
    [ACCEPT_SHARED] = {"shared", "all workers wait at one listener"},
    [ACCEPT_LOCK] = {"lock", "the worker that holds a file lock waits at the listener"},
    [ACCEPT_MUTEX] = {"mutex", "the worker that holds a mutex waits at the listener"},
    [ACCEPT_PASS] = {"pass", "the parent process accepts, and passes connections to workers"},
    [ACCEPT_QUEUE] = {"queue", "the main thread accepts, and puts connections into a queue"},
    [ACCEPT_REUSEPORT] = {"reuseport",
                          "each worker has a listener, and the kernel chooses one, even if its "
                          "worker is busy"},
};

const char *model_accept_name(enum accept way)
{
    return ways[way].name;
}

const char *model_accept_help(enum accept way)
{
    return ways[way].help;
}

bool model_knows(const struct model *model, enum accept way)
{
    return (model->accepts & (1U << way)) != 0;
}

enum accept model_default_accept(const struct model *model)
{
    for (int way = 0; way < ACCEPT_WAYS; way++)
        if (model_knows(model, (enum accept)way))
            return (enum accept)way;
    return ACCEPT_SHARED;
}

/* The memory that a connection takes in the server and the kernel, by what serves it. The study
 * `idle` measured 111 KiB for a process, 39 for a thread. An event loop lends buffers to a
 * connection that it serves. */
#define PROCESS_KIBIBYTES    112
#define THREAD_KIBIBYTES     40
#define EVENT_LOOP_KIBIBYTES 12

static uint64_t connection_bytes(const struct model *model)
{
    if (model->workers_per_processor > 0)
        return EVENT_LOOP_KIBIBYTES * 1024;
    return (model->children != NULL ? PROCESS_KIBIBYTES : THREAD_KIBIBYTES) * 1024;
}

/* A quarter of the memory is left for documents and what else runs in the group. */
uint64_t model_possible_connections(const struct model *model)
{
    return memory_limit() / 4 * 3 / connection_bytes(model);
}

int model_default_connections(const struct model *model)
{
    uint64_t possible = model_possible_connections(model);

    if (possible >= (uint64_t)model->max_connections)
        return model->max_connections;
    return possible > 0 ? (int)possible : 1;
}

/* Counts the processors that this process may use. */
int model_default_workers(const struct model *model)
{
    cpu_set_t set;
    int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int workers = processors * model->workers_per_processor;

    return workers < MODEL_WORKER_LIMIT ? workers : MODEL_WORKER_LIMIT;
}
