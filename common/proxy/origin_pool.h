/* Idle connections to origins. They belong to a process: its threads share them. */
#ifndef COMMON_PROXY_ORIGIN_POOL_H
#define COMMON_PROXY_ORIGIN_POOL_H

#include "common/net/address.h"
#include "common/net/transport.h"

/* The most connections that a pool can hold. */
#define ORIGIN_POOL_LIMIT 1024

struct origin_pool_limits {
    int each;   /* connections to one address */
    int all;    /* connections in all; 0: none */
    int idle;   /* how long one may be idle, in milliseconds */
    bool lasts; /* the process serves further clients */
};

struct origin_pool;

/* Returns NULL, with errno set, if there is no memory. */
struct origin_pool *origin_pool_open(const struct origin_pool_limits *limits);
/* Closes the connections, too. */
void origin_pool_close(struct origin_pool *pool);

/* Returns true if the process may need a connection again after this client's request. */
bool origin_pool_is_useful(const struct origin_pool *pool, bool client_stays);

/* Takes out the connection to the address that was used last. One whose time is over, that the
 * origin has closed, or on which it has sent anything is closed instead. Returns false if there is
 * none. `reloads` is how often the server was told to read everything again: older connections are
 * closed. */
bool origin_pool_take(struct origin_pool *pool, const union address *address, int64_t now,
                      unsigned reloads, struct transport *transport);
/* Keeps the connection. If there are as many as may be to its address, or in all, closes the one of
 * them that was used least recently. */
void origin_pool_put(struct origin_pool *pool, const union address *address, int64_t now,
                     const struct transport *transport);

/* Closes the connections whose time is over. Returns after how many milliseconds that of the next
 * is; -1: there is none. If `others`, other threads may put one in meanwhile: then it is not -1. */
int origin_pool_review(struct origin_pool *pool, int64_t now, bool others);
/* Closes all of them. */
void origin_pool_empty(struct origin_pool *pool);

#endif
