/* Collapses concurrent requests (RFC 9111, section 4): one of them asks the origin, and the others
 * wait for the entry that it stores or validates. */
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
    int64_t asked;              /* when it asked the origin itself */
    int64_t look_at;            /* when it looks again, even if there are no news */
    int news;                   /* a descriptor that tells of some (fetch_wakeup.h); -1: none */
    uint64_t releases;          /* fetch_lock_releases() at the last look */
};

void collapse_start(struct collapse *collapse, const struct cache *cache);
void collapse_end(struct collapse *collapse);

/* Takes the lock of a name, so that other requests wait. Returns false if it is not free. */
bool collapse_lock(struct collapse *collapse, const char *name);
/* Releases the lock, if this request holds it. */
void collapse_unlock(struct collapse *collapse);
/* Releases the lock until collapse_resume(), which returns false if another request has taken it in
 * between. */
void collapse_suspend(struct collapse *collapse);
bool collapse_resume(struct collapse *collapse);
bool collapse_is_held(const struct collapse *collapse);
/* Returns true if another request holds the lock of that name. The caller may wait for that request
 * without taking the lock. */
bool collapse_is_busy(struct collapse *collapse, const char *name);

/* Returns true if this request may begin to wait for another one, or continue to. `timeout` is that
 * of the origin. */
bool collapse_may_wait(const struct collapse *collapse, const char *name, int timeout, int64_t now);
/* To be called before this request, which holds the lock, asks the origin. If many requests ask for
 * the same, lets those whose processes or threads can run join first. */
void collapse_gather(const struct collapse *collapse);
/* Returns true if the request waits, and need not look for an entry yet. */
bool collapse_is_too_early(struct collapse *collapse, const char *name, int timeout, int64_t now);
/* Returns the status of the error if the fetch that it waited for has failed; 0 if not. */
int collapse_failure(const struct collapse *collapse, const char *name, int64_t now);
/* Returns true if the entry has been validated, or stored, by a question that this request may
 * share: it has waited for the answer. */
bool collapse_is_answered(const struct collapse *collapse, const char *name, int64_t now);
/* Notes for those who wait that this request, which holds the lock, has got such an answer, under
 * the name of the entry; or that the origin has failed it. */
void collapse_note_answer(const struct collapse *collapse, const char *name, int64_t now);
void collapse_note_failure(const struct collapse *collapse, int status, int64_t now);
/* Waits for news of the name, or looks again if there have been some meanwhile. */
enum service_progress collapse_wait(struct collapse *collapse, struct service_call *call,
                                    const char *name);

#endif
