/* Collapses concurrent requests (RFC 9111, section 4): one of them fetches, and the others wait for
 * the entry that it stores. */
#ifndef COMMON_PROXY_COLLAPSE_H
#define COMMON_PROXY_COLLAPSE_H

#include "common/proxy/cache_directory.h"
#include "common/service.h"

struct collapse {
    const struct cache *cache;
    int lock;                   /* below 0: this request does not hold it */
    char name[CACHE_NAME_SIZE]; /* of the lock that it holds, or held last */
    bool waited;                /* it has waited for another request */
    int64_t since;              /* when that began, in monotonic milliseconds; 0: it did not */
    int pause;                  /* milliseconds until it looks again */
    unsigned looks;
    uint64_t releases; /* fetch_lock_releases() at the last look */
};

void collapse_start(struct collapse *collapse, const struct cache *cache);

/* Takes the lock of a name, so that other requests wait. Returns false if it is not free. */
bool collapse_lock(struct collapse *collapse, const char *name);
/* Releases the lock, if this request holds it. */
void collapse_unlock(struct collapse *collapse);
/* Releases the lock until collapse_resume(), which returns false if another request has taken it in
 * between. */
void collapse_suspend(struct collapse *collapse);
bool collapse_resume(struct collapse *collapse);
bool collapse_is_held(const struct collapse *collapse);

/* Returns true if this request may begin to wait for another one, or continue to. `timeout` is that
 * of the origin. */
bool collapse_may_wait(const struct collapse *collapse, const char *name, int timeout, int64_t now);
/* Returns true if the request waits, and need not look for an entry yet. */
bool collapse_is_too_early(struct collapse *collapse, const char *name, int timeout, int64_t now);
/* Returns true if the fetch that it waited for has timed out. */
bool collapse_has_failed(const struct collapse *collapse, const char *name, int64_t now);
enum service_progress collapse_wait(struct collapse *collapse, struct service_call *call);

#endif
