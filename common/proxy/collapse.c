/* Decides which request fetches a response, and how long others wait for it. */
#include "common/proxy/collapse.h"

#include "common/proxy/fetch_wakeup.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

/* How long to wait beyond the timeout of the origin: since the fetch last received something, and
 * in all. */
#define WAIT_MILLISECONDS 5000
#define WAIT_LIMIT        60000
/* A request that waits is woken by news. It also looks after so long: the fetching process may have
 * died. */
#define LOOK_MILLISECONDS 250
/* The same if it cannot be woken. */
#define PAUSE_MILLISECONDS 16
/* A request shares a question that was asked at most this long before it came: the age of what the
 * origin says, in seconds, is 0 for both. An older question may be about an older state. */
#define SHARE_MILLISECONDS 1000

void collapse_start(struct collapse *collapse, const struct cache *cache)
{
    *collapse = (struct collapse){.cache = cache, .lock = FETCH_LOCK_BUSY, .news = -1};
}

static void stop_listening(struct collapse *collapse)
{
    if (collapse->news >= 0)
        close(collapse->news);
    collapse->news = -1;
}

void collapse_end(struct collapse *collapse)
{
    stop_listening(collapse);
    collapse_unlock(collapse);
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

bool collapse_is_busy(struct collapse *collapse, const char *name)
{
    collapse->releases = fetch_lock_releases(collapse->cache, name);
    return fetch_lock_is_taken(collapse->cache, name);
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
    return collapse->waited && !collapse_is_held(collapse) && now < collapse->look_at &&
           fetch_lock_releases(collapse->cache, name) == collapse->releases &&
           collapse_may_wait(collapse, name, timeout, now);
}

/* A descriptor that has told of news does so ever after, so each wait has its own. */
enum service_progress collapse_wait(struct collapse *collapse, struct service_call *call,
                                    const char *name)
{
    int64_t now = call->now.milliseconds;

    if (collapse->since == 0)
        collapse->since = now;
    collapse->waited = true;
    stop_listening(collapse);
    collapse->news = fetch_wakeup_listen(collapse->cache, name);
    if (now >= collapse->look_at)
        collapse->look_at = now + (collapse->news >= 0 ? LOOK_MILLISECONDS : PAUSE_MILLISECONDS);
    if (fetch_lock_releases(collapse->cache, name) != collapse->releases)
        return SERVICE_CONTINUES;
    call->descriptor = collapse->news;
    call->to_write = false;
    call->deadline = collapse->look_at;
    return SERVICE_WAITS;
}

/* Lets processes and threads that were woken read their requests first. Otherwise a nearby origin
 * would answer before they do, and each question would serve only a few requests. */
void collapse_gather(const struct collapse *collapse)
{
    if (collapse_is_held(collapse) && fetch_wakeup_is_awaited(collapse->cache, collapse->name))
        sched_yield();
}

/* ---- what it has waited for ---- */

int collapse_failure(const struct collapse *collapse, const char *name, int64_t now)
{
    return collapse->waited ? fetch_lock_failure(collapse->cache, name, collapse->since, now) : 0;
}

bool collapse_is_answered(const struct collapse *collapse, const char *name, int64_t now)
{
    return collapse->waited && fetch_lock_is_answered(collapse->cache, name, collapse->since,
                                                      collapse->since - SHARE_MILLISECONDS, now);
}

void collapse_note_answer(const struct collapse *collapse, const char *name, int64_t now)
{
    if (collapse_is_held(collapse))
        fetch_lock_note_answer(collapse->cache, name, collapse->asked, now);
}

void collapse_note_failure(const struct collapse *collapse, int status, int64_t now)
{
    if (collapse_is_held(collapse))
        fetch_lock_note_failure(collapse->cache, collapse->name, status, now);
}
