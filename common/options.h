/* The command line: one table of options for all servers. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/listener.h"
#include "common/site.h"

#define OPTIONS_VERSION "1.0"

/* What a model says of itself. */
struct model {
    const char *name;    /* as in fork_server */
    const char *summary; /* as in "one process per connection" */
    const char *advice;  /* when to take it, and when not */
    int max_connections; /* by default */
    /* How many descriptors of the process that accepts a connection holds open while it lasts: its
     * socket and its file, if the process serves it itself. */
    int descriptors;
    bool shares_memory; /* all connections are served by one process */
    const char *makes;  /* "processes" or "threads", for each connection; or NULL */
    /* Reaps children that have ended, and reports those that died without a word; waits for the
     * last one if `all`. Whether there are any left. NULL for a model without children. */
    bool (*collect)(bool all);
};

struct options {
    const char *root;
    const char *bind[LISTENER_LIMIT];
    int bind_count;
    uint16_t port;
    const struct service *service;
    enum protocol protocol;
    int max_connections;
    int request_timeout, idle_timeout, write_timeout; /* milliseconds */
    int backlog;
    bool list;
    const char *log;
    const char *stats;
    const char *user;
    bool no_sandbox;
    bool no_shelf;
};

enum options_verdict {
    OPTIONS_GOOD,
    OPTIONS_DONE, /* help or the version was asked for, and printed */
    OPTIONS_BAD,  /* what is wrong was said */
};

enum options_verdict options_read(struct options *options, const struct model *model, int argc,
                                  char **argv);

#endif
