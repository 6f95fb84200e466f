/* A concurrency model: what each server program says about itself. */
#ifndef COMMON_MODEL_H
#define COMMON_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct server;

/* A connection is served by one of these. */
enum served_by {
    BY_MAIN,          /* the main thread, which accepts it */
    BY_THREAD,        /* a thread of its own */
    BY_CHILD,         /* a process of its own */
    BY_WORKER_THREAD, /* one of a fixed number of threads, each of which serves many */
    BY_WORKER_PROCESS /* one of such processes */
};

/* How workers get their connections. The first way that a model knows is its default. */
enum accept {
    ACCEPT_FEW,
    ACCEPT_SHARED,
    ACCEPT_LOCK,
    ACCEPT_MUTEX,
    ACCEPT_PASS,
    ACCEPT_QUEUE,
    ACCEPT_REUSEPORT,
    ACCEPT_WAYS
};

/* The parts of a process that a child shares with its maker, from none (fork) to all (a thread).
 * The first is the default. */
enum share {
    SHARE_NOTHING,
    SHARE_FILES,
    SHARE_FS,
    SHARE_MEMORY,
    SHARE_MEMORY_FILES,
    SHARE_MEMORY_FILES_FS,
    SHARE_MEMORY_FILES_FS_SIGNALS,
    SHARE_ALL,
    SHARE_WAYS
};

/* How a server deals with the child processes that its model makes. */
struct model_children {
    /* Reaps children that have ended, and reports those that crashed. Returns the milliseconds
     * until it wants to be called again; -1: it does not. Where `ending`, a model that waits for
     * its children wants to be called until the last one has been reaped. */
    int (*collect)(struct server *server, bool ending);
    /* Returns the CPU time of the living children. NULL: they count once they are reaped. */
    double (*cpu_seconds)(const struct server *server);
    /* Frees what the model holds for them. NULL: nothing. */
    void (*free)(struct server *server);
};

struct model {
    const char *name;    /* as in fork_server */
    const char *summary; /* as in "one process per connection" */
    const char *take;    /* completes "Take it ..." */
    const char *avoid;   /* completes "Do not take it ..." */
    enum served_by served_by;
    int max_connections; /* by default; 0: one for each worker */
    /* How many descriptors of the accepting process each connection holds open: its socket and its
     * file, if that process serves it. */
    int descriptors;
    int workers_per_processor; /* by default; 0: the model has no workers */
    unsigned accepts;          /* the ways to accept: 1 << ACCEPT_SHARED and so on */
    /* A worker that waits for the request of a client serves nobody else: the kernel shall wait. */
    bool defers;
    bool rings;                            /* its workers use rings (io_uring) */
    bool shares;                           /* its children can share things with it */
    bool has_template;                     /* it can fork from a small process beside it */
    const struct model_children *children; /* NULL: it makes no processes */
};

/* The ways in which a model can do something: to accept, or to share. The default comes first. */
struct model_ways {
    int count;
    bool (*knows)(const struct model *model, int way);
    const struct model_way {
        const char *name;
        const char *help;
    } * ways;
};
extern const struct model_ways model_accept_ways;
extern const struct model_ways model_share_ways;
/* The first way that a model knows; -1 if it knows none. */
int model_first_way(const struct model_ways *ways, const struct model *model);

bool model_knows(const struct model *model, enum accept way);
/* Returns true if it makes processes, which serve. */
static inline bool model_makes_processes(const struct model *model)
{
    return model->served_by == BY_CHILD || model->served_by == BY_WORKER_PROCESS;
}

/* Returns true if it makes threads, which serve. */
static inline bool model_makes_threads(const struct model *model)
{
    return model->served_by == BY_THREAD || model->served_by == BY_WORKER_THREAD;
}

/* Returns true if it makes a thread or process for each connection: where these are too many, some
 * give their seats up. */
static inline bool model_makes_for_each(const struct model *model)
{
    return model->served_by == BY_THREAD || model->served_by == BY_CHILD;
}

/* Returns true if a process that serves a connection goes on to serve others: it keeps a file cache
 * from the start. */
static inline bool model_lasts(const struct model *model)
{
    return model->served_by != BY_CHILD;
}

/* Returns "processes" or "threads"; NULL if it makes none. */
const char *model_makes(const struct model *model);
/* The default number of workers on this machine; 0 for a model without workers. */
int model_default_workers(const struct model *model);

const char *model_accept_name(enum accept way);

/* The most workers that a server may have. */
#define MODEL_WORKER_LIMIT 1024

#endif
