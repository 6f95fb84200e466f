/* Stores the origin's response while it is sent to the client. */
#ifndef COMMON_PROXY_CACHE_STORE_H
#define COMMON_PROXY_CACHE_STORE_H

#include "common/proxy/cache_lookup.h"
#include "common/proxy/fetch.h"

/* The longest last piece of a stored body that is sent from memory. */
#define CACHE_STORE_SHORT_BYTES 8192
/* The longest body that is held in memory until it is whole, or the origin has to be waited for:
 * most bodies up to this length come at once, and take one write. */
#define CACHE_STORE_HELD_BYTES (128 * 1024)

struct cache_store {
    struct cache_lookup *lookup;
    struct cache_writer writer;
    bool storing;
    uint64_t before;   /* bytes of a joined part that the client does not get */
    uint64_t ready;    /* bytes of it that the client gets before those of the origin */
    struct range tail; /* of it, to be copied behind those of the origin; or empty */
    bool stored;       /* the whole response has become an entry */
    bool for_later;    /* the response is one to POST that may answer a GET */
    bool shown;        /* others may send the entry as it grows */
    uint64_t told;     /* its length when they were told last */
    bool fresh;        /* others may use the response as it is */
    int64_t finish_by; /* when to give up once the client has left; 0: it has not */
};

void cache_store_start(struct cache_store *store, struct cache_lookup *lookup);
void cache_store_end(struct cache_store *store);

/* The head of a final response has come: updates and removes entries, and begins to store the
 * response, or releases the lock. */
void cache_store_begin(struct cache_store *store, struct fetch *fetch, struct service_call *call);
/* The response takes time: lets those who wait for it send what has come. */
void cache_store_show(struct cache_store *store, const struct fetch *fetch);
/* Stores a piece of the body. Returns false if it is not stored: the client gets it from memory. */
bool cache_store_add(struct cache_store *store, struct fetch *fetch,
                     const struct service_call *call, struct text data);
/* The response takes time: has the client get what is held. */
void cache_store_flush(struct cache_store *store, struct fetch *fetch,
                       const struct service_call *call);
/* Commits the response if it is whole; notes that the origin has failed if not. */
void cache_store_finish(struct cache_store *store, struct fetch *fetch, struct moment now,
                        bool whole);

/* The client does not take all at once: it gets the rest of what was held from the file, if it is
 * there, and the memory is freed. */
void cache_store_release(struct cache_store *store, struct fetch *fetch);

/* Writes the Cache-Status of the origin's response. */
void cache_store_write_status(const struct cache_store *store, const struct fetch *fetch,
                              struct buffer *lines);

#endif
