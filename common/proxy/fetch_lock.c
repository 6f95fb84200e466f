/* Locks the names of responses that are being fetched, and tells how their fetches go on. */
#include "common/proxy/fetch_lock.h"

#include "common/proxy/cache_name.h"
#include "common/proxy/cache_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The clock of one worker may be behind that of another by this many milliseconds. */
#define CLOCK_DIFFERENCE 1000

/* ---- the lock ---- */

/* A lock is a byte of one file. An open file description holds it, so it also works between
 * threads, and needs no cleaning up. */
int fetch_lock_take(const struct cache *cache, const char *name)
{
    struct flock lock = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(cache_name_number(name) >> 2),
        .l_len = 1,
    };
    int file = cache_file_open(cache, CACHE_NAME_LOCKS, O_RDWR | O_CREAT), error;

    if (file < 0)
        return FETCH_LOCK_NONE;
    if (fcntl(file, F_OFD_SETLK, &lock) == 0)
        return file;
    error = errno;
    close(file);
    return error == EAGAIN || error == EACCES ? FETCH_LOCK_BUSY : FETCH_LOCK_NONE;
}

void fetch_lock_release(const struct cache *cache, const char *name, int lock)
{
    if (lock < 0)
        return;
    close(lock);
    atomic_fetch_add(&cache->shared->releases[cache_shared_slot(name)], 1);
}

uint64_t fetch_lock_releases(const struct cache *cache, const char *name)
{
    return atomic_load(&cache->shared->releases[cache_shared_slot(name)]);
}

/* ---- progress and timeouts ---- */

void fetch_lock_note_progress(const struct cache *cache, const char *name, int64_t now)
{
    atomic_store_explicit(&cache->shared->progress[cache_shared_slot(name)], now,
                          memory_order_relaxed);
}

int64_t fetch_lock_progress(const struct cache *cache, const char *name, int64_t now)
{
    int64_t then = atomic_load_explicit(&cache->shared->progress[cache_shared_slot(name)],
                                        memory_order_relaxed);

    /* A time in the future is from before the machine was restarted. */
    return then <= now + CLOCK_DIFFERENCE ? then : 0;
}

void fetch_lock_note_timeout(const struct cache *cache, const char *name, int64_t now)
{
    size_t slot = cache_shared_slot(name);

    atomic_store(&cache->shared->timeout_numbers[slot], cache_name_number(name));
    atomic_store(&cache->shared->timeouts[slot], now);
}

bool fetch_lock_timed_out(const struct cache *cache, const char *name, int64_t since, int64_t now)
{
    size_t slot = cache_shared_slot(name);
    int64_t then = atomic_load(&cache->shared->timeouts[slot]);

    return then >= since && then <= now + CLOCK_DIFFERENCE &&
           atomic_load(&cache->shared->timeout_numbers[slot]) == cache_name_number(name);
}

/* ---- bypasses ---- */

/* The low half of a slot is the second in which it expires; the high half is part of the name. */
#define SECONDS_MASK UINT64_C(0xffffffff)

void fetch_lock_note_bypass(const struct cache *cache, const char *name, int64_t now)
{
    uint64_t number = cache_name_number(name);

    atomic_store_explicit(&cache->shared->bypasses[cache_shared_slot(name)],
                          (number & ~SECONDS_MASK) |
                              ((uint64_t)(now + FETCH_LOCK_BYPASS_SECONDS) & SECONDS_MASK),
                          memory_order_relaxed);
}

bool fetch_lock_is_bypassed(const struct cache *cache, const char *name, int64_t now)
{
    uint64_t number = cache_name_number(name);
    uint64_t slot = atomic_load_explicit(&cache->shared->bypasses[cache_shared_slot(name)],
                                         memory_order_relaxed);

    return (slot & ~SECONDS_MASK) == (number & ~SECONDS_MASK) &&
           (slot & SECONDS_MASK) > (uint64_t)now &&
           (slot & SECONDS_MASK) <= (uint64_t)now + FETCH_LOCK_BYPASS_SECONDS;
}
