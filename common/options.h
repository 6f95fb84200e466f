/* The options of a server, as read from its command line. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/model.h"
#include "common/net/listener.h"
#include "common/service.h"

/* How often --allow can be given. */
#define OPTIONS_ALLOW_LIMIT 16

struct options {
    const char *root;
    const char *bind[LISTENER_LIMIT];
    int bind_count;
    uint16_t port;
    const struct service *service;
    int max_age; /* seconds */
    enum protocol protocol;
    int max_connections;
    int max_per_address;  /* 0: half of the connections */
    int rate_per_address; /* 0: no limit */
    int workers;          /* or 0 */
    int accept;           /* enum accept */
    int share;            /* enum share */
    bool template;
    bool tls;
    const char *certificate, *key;
    bool key_process;
    bool udp;
    int request_timeout, idle_timeout, write_timeout, stop_timeout; /* milliseconds */
    int backlog;
    bool list;
    bool status;
    const char *log;
    const char *stats;
    const char *trace;
    int trace_events;
    const char *user;
    bool no_sandbox;
    bool sandbox_kills;
    bool no_file_cache;
    uint64_t ballast; /* bytes */
    bool ballast_huge;
    /* Of the proxy. */
    struct text origin; /* "HOST:PORT", without "http://"; or empty */
    bool origin_tls;    /* it was "https://" */
    const char *origin_ca;
    const char *name_server;
    const char *allow[OPTIONS_ALLOW_LIMIT];
    int allow_count;
    int forwarded; /* see option_table_forwarded() */
    bool forwarded_append;
    int stale_if_error; /* milliseconds */
    int origin_timeout;
    int origin_idle, origin_idle_all;
    int origin_idle_timeout; /* milliseconds */
    uint64_t max_body;       /* bytes */
    const char *cache;
    uint64_t cache_size; /* bytes */
    bool no_cache;
    bool classroom;
};

#endif
