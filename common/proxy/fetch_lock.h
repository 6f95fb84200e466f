/* Locks for the names of entries: the request that holds one fetches the response, and tells those
 * that wait how the fetch goes on. */
#ifndef COMMON_PROXY_FETCH_LOCK_H
#define COMMON_PROXY_FETCH_LOCK_H

#include "common/proxy/cache_file.h"

/* Keeps so many open files for the next locks, which pays where a process serves many connections.
 * Without them, a file is opened for each lock. */
#define FETCH_LOCK_FILES 64
void fetch_lock_open_files(struct cache *cache);
void fetch_lock_close_files(struct cache *cache);

/* Locks the name. Returns a descriptor, or one of these. The kernel releases the lock if its holder
 * dies. */
#define FETCH_LOCK_BUSY (-1) /* somebody else holds it */
#define FETCH_LOCK_NONE (-2) /* no lock can be had: do not wait */
int fetch_lock_take(const struct cache *cache, const char *name);
/* Returns true if somebody holds it. */
bool fetch_lock_is_taken(const struct cache *cache, const char *name);
/* Releases the lock, if it is held, and wakes those who wait (fetch_wakeup.h). */
void fetch_lock_release(const struct cache *cache, const char *name, int lock);
/* Wakes those who wait, as a release does. */
void fetch_lock_note_news(const struct cache *cache, const char *name);
/* Counts releases and other news. While the number is the same, the lock is free only if its holder
 * has died; and if it is the same once the lock is taken, nobody has released it in between. */
uint64_t fetch_lock_releases(const struct cache *cache, const char *name);

/* Notes that the fetch of that name has received something, at a time in monotonic milliseconds. */
void fetch_lock_note_progress(const struct cache *cache, const char *name, int64_t now);
/* Returns the last such time; 0 if there is none. */
int64_t fetch_lock_progress(const struct cache *cache, const char *name, int64_t now);

/* Notes that the origin has failed the fetch of that name, with the status of the error. */
void fetch_lock_note_failure(const struct cache *cache, const char *name, int status, int64_t now);
/* Returns the status of the last such failure if it was at `since` or later; 0 if not. */
int fetch_lock_failure(const struct cache *cache, const char *name, int64_t since, int64_t now);

/* Notes that the origin has validated the entry of that name, or has sent a fresh response for it;
 * and when the origin was asked. */
void fetch_lock_note_answer(const struct cache *cache, const char *name, int64_t asked,
                            int64_t now);
/* Returns true if that was noted at `since` or later, and the origin was asked at `asked_since` or
 * later. */
bool fetch_lock_is_answered(const struct cache *cache, const char *name, int64_t since,
                            int64_t asked_since, int64_t now);

/* Notes, for some seconds, that responses of that name will not be stored: no request waits for
 * one. `now` is in seconds. */
#define FETCH_LOCK_BYPASS_SECONDS 10
void fetch_lock_note_bypass(const struct cache *cache, const char *name, int64_t now);
bool fetch_lock_is_bypassed(const struct cache *cache, const char *name, int64_t now);

#endif
