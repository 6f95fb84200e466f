/* Decides which request fetches a response, and how long others wait for it. */
#include "common/proxy/collapse.h"

#include <string.h>

/* How long to wait beyond the timeout of the origin: since the fetch last received something, and
 * in all. */
#define WAIT_MILLISECONDS 5000
#define WAIT_LIMIT        60000
/* How long to wait between two looks. */
#define FIRST_PAUSE   2
#define LONGEST_PAUSE 32
/* While no lock was released, only one in this many looks reads the cache. */
#define LOOKS 4

void collapse_start(struct collapse *collapse, const struct cache *cache)
{
    *collapse = (struct collapse){.cache = cache, .lock = FETCH_LOCK_BUSY};
}

/* ---- the lock ---- */

bool collapse_is_held(const struct collapse *collapse)
{
    return collapse->lock >= 0;
}

bool collapse_lock(struct collapse *collapse, const char *name)
{
    memcpy(collapse->name, name, sizeof collapse->name);
    collapse->releases = fetch_lock_releases(collapse->cache, collapse->name);
    collapse->lock = fetch_lock_take(collapse->cache, collapse->name);
    return collapse_is_held(collapse);
}

void collapse_unlock(struct collapse *collapse)
{
    fetch_lock_release(collapse->cache, collapse->name, collapse->lock);
    collapse->lock = FETCH_LOCK_BUSY;
}

void collapse_suspend(struct collapse *collapse)
{
    if (!collapse_is_held(collapse))
        return;
    collapse_unlock(collapse);
    collapse->releases = fetch_lock_releases(collapse->cache, collapse->name);
}

bool collapse_resume(struct collapse *collapse)
{
    char name[CACHE_NAME_SIZE];

    if (collapse_is_held(collapse))
        return true;
    if (fetch_lock_releases(collapse->cache, collapse->name) != collapse->releases)
        return false;
    memcpy(name, collapse->name, sizeof name);
    return collapse_lock(collapse, name);
}

/* ---- waiting ---- */

/* The fetching request may die, and the origin may be silent; but a fetch that receives something
 * is worth waiting for. */
bool collapse_may_wait(const struct collapse *collapse, const char *name, int timeout, int64_t now)
{
    int64_t since = collapse->since, progress;

    if (since == 0)
        return true;
    progress = fetch_lock_progress(collapse->cache, name, now);
    return now < (progress > since ? progress : since) + timeout + WAIT_MILLISECONDS &&
           now < since + timeout + WAIT_LIMIT;
}

bool collapse_is_too_early(struct collapse *collapse, const char *name, int timeout, int64_t now)
{
    return collapse->waited && !collapse_is_held(collapse) &&
           fetch_lock_releases(collapse->cache, name) == collapse->releases &&
           ++collapse->looks % LOOKS != 0 && collapse_may_wait(collapse, name, timeout, now);
}

bool collapse_has_failed(const struct collapse *collapse, const char *name, int64_t now)
{
    return collapse->waited && !collapse_is_held(collapse) &&
           fetch_lock_timed_out(collapse->cache, name, collapse->since, now);
}

enum service_progress collapse_wait(struct collapse *collapse, struct service_call *call)
{
    int64_t now = call->now.milliseconds;

    if (collapse->since == 0) {
        collapse->since = now;
        collapse->pause = FIRST_PAUSE;
    } else if (collapse->pause < LONGEST_PAUSE) {
        collapse->pause *= 2;
    }
    collapse->waited = true;
    call->descriptor = -1;
    call->deadline = now + collapse->pause;
    return SERVICE_WAITS;
}
