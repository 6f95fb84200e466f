/* The lookup of a request in the cache, and its stage. */
#ifndef COMMON_PROXY_CACHE_LOOKUP_H
#define COMMON_PROXY_CACHE_LOOKUP_H

#include "common/proxy/cache_directory.h"
#include "common/proxy/cache_part.h"
#include "common/proxy/collapse.h"
#include "common/proxy/find_origin.h"
#include "common/proxy/freshness.h"
#include "common/proxy/stage.h"

struct cache_lookup {
    const struct cache *cache;     /* NULL: none */
    struct text uri;               /* from malloc; empty: the request does not concern the cache */
    size_t origin_length;          /* of its beginning, up to the path */
    char name[CACHE_NAME_SIZE];    /* of the entry that the request has, or would have */
    bool missing;                  /* the last look has found nothing */
    uint64_t releases;             /* fetch_lock_releases() before the last look */
    struct cache_control control;  /* of the request */
    bool may_use;                  /* the request permits an entry as the response */
    bool may_store;                /* the origin's response may become an entry */
    struct cache_entry entry;      /* the one found */
    struct cached_response cached; /* the head of its response */
    struct cache_part part;        /* or a part of one, for a request with Range */
    bool part_tried;               /* it has been looked for */
    struct range wanted;           /* the range that the request asks for, of which the part has the
                                      beginning, and the origin is asked for the rest; or empty */
    const char *reason;            /* for asking the origin, in the words of Cache-Status */
    bool validates;                /* the request to the origin is conditional on the entry */
    bool bridges;                  /* the entry may be served if the origin fails */
    struct collapse collapse;
    int64_t requested; /* when the origin was asked, in seconds since 1970 */
    uint64_t removals; /* how often entries of the URI had been removed before that */
};

/* Starts a lookup whose bytes are zero. */
void cache_lookup_start(struct cache_lookup *lookup, const struct cache *cache);
/* Reads what the request allows. Returns false if there is no memory. */
bool cache_lookup_begin(struct cache_lookup *lookup, const struct origin *origin,
                        const struct service_call *call);
void cache_lookup_end(struct cache_lookup *lookup);

/* The stage. */
enum service_progress cache_lookup_run(struct cache_lookup *lookup, struct service_call *call);

/* Reads the head of a response as the rules of this cache have it. */
void cache_lookup_read(const struct cache_lookup *lookup, struct cached_response *response,
                       const struct cache_record *record);

bool cache_lookup_has_entry(const struct cache_lookup *lookup);
void cache_lookup_drop_entry(struct cache_lookup *lookup);
/* Returns true if the origin is asked for the rest of a range. */
bool cache_lookup_wants_rest(const struct cache_lookup *lookup);
/* From now on the request concerns no part. */
void cache_lookup_drop_part(struct cache_lookup *lookup);
/* Notes that the origin is asked now. */
void cache_lookup_note_request(struct cache_lookup *lookup, struct moment now);

#endif
