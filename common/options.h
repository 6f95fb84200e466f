/* The command line: one table of options for all servers. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/net/listener.h"
#include "common/service.h"

struct server;

/* How often --allow can be given. */
#define OPTIONS_ALLOW_LIMIT 16

/* How the workers of a crew come by connections. The first one that a model knows is its default.
 */
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

/* What a model says of itself. */
struct model {
    const char *name;    /* as in fork_server */
    const char *summary; /* as in "one process per connection" */
    const char *advice;  /* when to take it, and when not */
    int max_connections; /* by default; 0: one for each worker */
    /* How many descriptors of the process that accepts a connection holds open while it lasts: its
     * socket and its file, if the process serves it itself. */
    int descriptors;
    bool lasting;      /* who serves a connection serves others after it, and may remember */
    const char *makes; /* "processes" or "threads"; or NULL */
    int crew;          /* workers for each processor, by default; 0: none */
    unsigned accepts;  /* a crew's ways to accept, 1 << ACCEPT_SHARED and so on */
    bool supervises;   /* its workers are processes: it wants to know when one ends */
    /* Reaps children that have ended, and reports those that died without a word; waits for the
     * last one if `all`. After how many milliseconds it wants to be called again, or -1. NULL for a
     * model without children. */
    int (*collect)(struct server *server, bool all);
};

struct options {
    const char *root;
    const char *bind[LISTENER_LIMIT];
    int bind_count;
    uint16_t port;
    const struct service *service;
    int max_age; /* seconds */
    enum protocol protocol;
    int max_connections;
    int workers; /* of a crew; or 0 */
    enum accept accept;
    bool tls;
    const char *certificate, *key;
    bool udp;
    int request_timeout, idle_timeout, write_timeout; /* milliseconds */
    int backlog;
    bool list;
    const char *log;
    const char *stats;
    const char *user;
    bool no_sandbox;
    bool no_file_cache;
    /* Of the proxy. */
    const char *origin; /* "HOST:PORT", without "http://" */
    const char *allow[OPTIONS_ALLOW_LIMIT];
    int allow_count;
    int origin_timeout; /* milliseconds */
    uint64_t max_body;  /* bytes */
    const char *cache;
    uint64_t cache_size; /* bytes */
    bool no_cache;
    bool classroom;
};

enum options_verdict {
    OPTIONS_GOOD,
    OPTIONS_DONE, /* help or the version was asked for, and printed */
    OPTIONS_BAD,  /* what is wrong was said */
};

enum options_verdict options_read(struct options *options, const struct model *model, int argc,
                                  char **argv);
/* The name of a way to accept. */
const char *options_way(enum accept way);

#endif
