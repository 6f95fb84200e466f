/* Locks for the names of entries: the request that holds one fetches the response, and tells those
 * that wait how the fetch goes on. */
#ifndef COMMON_PROXY_FETCH_LOCK_H
#define COMMON_PROXY_FETCH_LOCK_H

#include "common/proxy/cache_file.h"

/* Locks the name. Returns a descriptor, or one of these. The kernel releases the lock if its holder
 * dies. */
#define FETCH_LOCK_BUSY (-1) /* somebody else holds it */
#define FETCH_LOCK_NONE (-2) /* no lock can be had: do not wait */
int fetch_lock_take(const struct cache *cache, const char *name);
/* Releases the lock, if it is held. */
void fetch_lock_release(const struct cache *cache, const char *name, int lock);
/* Counts releases. While the number is the same, the lock is free only if its holder has died. */
uint64_t fetch_lock_releases(const struct cache *cache, const char *name);

/* Notes that the fetch of that name has received something, at a time in monotonic milliseconds. */
void fetch_lock_note_progress(const struct cache *cache, const char *name, int64_t now);
/* Returns the last such time; 0 if there is none. */
int64_t fetch_lock_progress(const struct cache *cache, const char *name, int64_t now);

/* Notes that the origin did not answer the fetch of that name in time. */
void fetch_lock_note_timeout(const struct cache *cache, const char *name, int64_t now);
/* Returns true if that has happened since then. */
bool fetch_lock_timed_out(const struct cache *cache, const char *name, int64_t since, int64_t now);

/* Notes, for some seconds, that responses of that name will not be stored: no request waits for
 * one. `now` is in seconds. */
#define FETCH_LOCK_BYPASS_SECONDS 10
void fetch_lock_note_bypass(const struct cache *cache, const char *name, int64_t now);
bool fetch_lock_is_bypassed(const struct cache *cache, const char *name, int64_t now);

#endif
