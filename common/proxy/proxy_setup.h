/* The proxy: its settings, the origins that it may connect to, and its cache. */
#ifndef COMMON_PROXY_PROXY_SETUP_H
#define COMMON_PROXY_PROXY_SETUP_H

#include "common/net/address.h"
#include "common/net/listener.h"
#include "common/net/name_lookup.h"
#include "common/proxy/cache_directory.h"
#include "common/proxy/fetch_lock.h"
#include "common/proxy/forwarded.h"
#include "common/proxy/origin_pool.h"
#include "common/service.h"

#define PROXY_ALLOW_LIMIT 16

struct proxy_settings {
    struct text origin;      /* "host:port" of the only origin; empty: the client names it */
    bool origin_tls;         /* it is asked by HTTPS */
    const char *origin_ca;   /* the certificates of authorities for that */
    struct text name_server; /* "address:port"; empty: those of the machine */
    struct helper_process_confinement names;  /* of the process that looks the origin up */
    struct helper_process_confinement keeper; /* of that which keeps the cache below its limit */
    const char *const *allow; /* "host:port" of allowed destinations beside loopback; "loopback" */
    int allow_count;
    const char *cache;   /* the path of its directory */
    int cache_directory; /* -1: nothing is stored */
    uint64_t cache_size;
    int timeout;            /* for the origin, in milliseconds */
    int64_t stale_if_error; /* seconds an entry may be stale if the origin is unreachable; or -1 */
    uint64_t body_limit;
    bool classroom;
    enum forwarded_fields forwarded; /* if there is one origin */
    bool forwarded_append;
    struct origin_pool_limits pool;
};

struct proxy {
    struct text origin;        /* "host:port" of the only one; empty: the client names it */
    uint16_t origin_port;      /* 0: none */
    struct name_lookup *names; /* of the origin; NULL: its addresses are fixed */
    enum address_scope scope;  /* how far from public they may be */
    struct tls_client *tls;    /* of the origin; NULL: it is asked by HTTP */
    char *hosts;               /* the text of the hosts file */
    size_t hosts_length;
    union address allowed[(1 + PROXY_ALLOW_LIMIT) * ADDRESS_LIST_LIMIT]; /* beside loopback */
    int allowed_count;
    bool serves_others;                /* clients of other machines can reach it */
    bool loopback_for_all;             /* they may reach loopback addresses */
    union address own[LISTENER_LIMIT]; /* the addresses that it listens on */
    int own_count;
    enum forwarded_fields forwarded; /* if there is one origin */
    bool forwarded_append;
    struct origin_pool *pool; /* of connections to origins */
    struct cache cache;       /* its `shared` is NULL: none */
    char name[32];            /* of this proxy in Via */
    int timeout;              /* for the origin, in milliseconds */
    int64_t stale_if_error;   /* see above */
    uint64_t body_limit;
    bool classroom;
};

/* Opens what it needs before the sandbox forbids that. On failure it prints why and returns
 * NULL. */
struct proxy *proxy_open(const struct proxy_settings *settings, const struct listener *listener);
void proxy_close(struct proxy *proxy);
/* Returns true if files of locks are kept open (fetch_lock.h), which needs room for descriptors, as
 * connections to origins do. */
bool proxy_keeps_locks(const struct origin_pool_limits *limits);
/* In a process that ends before the server does: frees the memory that this process got. */
void proxy_end_child(struct proxy *proxy);

/* Returns the port of an origin that names none. */
uint16_t proxy_default_port(const struct proxy *proxy);
/* Finds the addresses of a host: it is numeric, localhost, or in the hosts file. */
bool proxy_find_addresses(const struct proxy *proxy, struct text host, uint16_t port,
                          struct address_list *addresses);
/* Finds the addresses of the origin; its name may have been looked up. */
bool proxy_find_origin(const struct proxy *proxy, struct text host, uint16_t port, int64_t now,
                       struct address_list *addresses);
/* Removes the addresses that the proxy may not connect to for this client. Returns 0, or the status
 * of an error and its `problem` if none is left. */
int proxy_judge(const struct proxy *proxy, struct transport *client,
                struct address_list *destination, const char **problem);

#endif
