/* The ways to accept, and what follows from what a model says about itself. */
#include "common/model.h"

#include <sched.h>

static const struct model_way accept_ways[ACCEPT_WAYS] = {
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

static const struct model_way share_ways[SHARE_WAYS] = {
    [SHARE_NOTHING] = {"nothing", "a process, as fork makes it"},
    [SHARE_FILES] = {"files", "the table of open files"},
    [SHARE_FS] = {"fs", "the root and the current directory"},
    [SHARE_MEMORY] = {"memory", "the address space"},
    [SHARE_MEMORY_FILES] = {"memory-files", "the address space and the open files"},
    [SHARE_MEMORY_FILES_FS] = {"memory-files-fs", "also the root and the current directory"},
    [SHARE_MEMORY_FILES_FS_SIGNALS] = {"memory-files-fs-signals", "also the signal handlers"},
    [SHARE_ALL] = {"all", "also the thread group, as threads do"},
};

const char *model_accept_name(enum accept way)
{
    return accept_ways[way].name;
}

bool model_knows(const struct model *model, enum accept way)
{
    return (model->accepts & (1U << way)) != 0;
}

static bool knows_accept(const struct model *model, int way)
{
    return model_knows(model, (enum accept)way);
}

static bool knows_share(const struct model *model, int way)
{
    (void)way;
    return model->shares;
}

const struct model_ways model_accept_ways = {ACCEPT_WAYS, knows_accept, accept_ways};
const struct model_ways model_share_ways = {SHARE_WAYS, knows_share, share_ways};

int model_first_way(const struct model_ways *ways, const struct model *model)
{
    for (int way = 0; way < ways->count; way++)
        if (ways->knows(model, way))
            return way;
    return -1;
}

/* Counts the processors that this process may use. */
int model_default_workers(const struct model *model)
{
    cpu_set_t set;
    int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int workers = processors * model->workers_per_processor;

    return workers < MODEL_WORKER_LIMIT ? workers : MODEL_WORKER_LIMIT;
}

const char *model_makes(const struct model *model)
{
    if (model_makes_processes(model))
        return "processes";
    return model_makes_threads(model) ? "threads" : NULL;
}
