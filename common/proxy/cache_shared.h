/* The memory that all processes with the same cache directory share: a mapped file in it, with the
 * size of all entries and a table with a slot for each name. Names with the same slot disturb each
 * other, which costs a needless fetch or wait, and no more. */
#ifndef COMMON_PROXY_CACHE_SHARED_H
#define COMMON_PROXY_CACHE_SHARED_H

#include "common/proxy/cache_file.h"

#include <stdatomic.h>

#define CACHE_SHARED_SLOTS    4096
#define CACHE_SHARED_REMOVALS 32

struct cache_shared {
    _Atomic int64_t size;
    _Atomic bool counted;   /* the size has been counted from the files */
    _Atomic int64_t stored; /* when an entry was stored last, in nanoseconds since 1970 */
    _Atomic uint64_t bypasses[CACHE_SHARED_SLOTS];
    _Atomic uint64_t removals[CACHE_SHARED_SLOTS]; /* their number: see cache_removal_count.h */
    _Atomic uint64_t removed[CACHE_SHARED_SLOTS][CACHE_SHARED_REMOVALS]; /* the latest names */
    _Atomic uint64_t releases[CACHE_SHARED_SLOTS];
    _Atomic int64_t progress[CACHE_SHARED_SLOTS]; /* in monotonic milliseconds */
    _Atomic int64_t
        failures[CACHE_SHARED_SLOTS]; /* of the last fetch that failed: see fetch_lock.c, */
    _Atomic uint64_t failure_numbers[CACHE_SHARED_SLOTS]; /* and the number of its name */
    _Atomic int64_t answers[CACHE_SHARED_SLOTS]; /* the same of the last answer that is shared */
    _Atomic uint64_t answer_numbers[CACHE_SHARED_SLOTS];
    _Atomic uint64_t growing_numbers[CACHE_SHARED_SLOTS]; /* of names: see cache_growing.h */
    _Atomic uint64_t growing_files[CACHE_SHARED_SLOTS][2];
    _Atomic uint64_t growing_removals[CACHE_SHARED_SLOTS];
    _Atomic uint32_t news[CACHE_SHARED_SLOTS]; /* see fetch_wakeup.c */
};

/* Servers of different versions may use a directory at the same time: another layout needs another
 * CACHE_NAME_SHARED. */
_Static_assert(sizeof(struct cache_shared) == 24 + CACHE_SHARED_SLOTS * 356,
               "the layout has the number 2");

/* Maps the file, and removes that of an earlier version. Returns false with errno set if it cannot.
 */
bool cache_shared_open(struct cache *cache);
void cache_shared_close(struct cache *cache);
/* Has this process repair the file when somebody made it shorter, even if SIGBUS was blocked. */
void cache_shared_hear_faults(void);

/* Returns the slot of a name. */
size_t cache_shared_slot(const char *name);

/* Returns the bytes of all entries, as far as is known. */
uint64_t cache_shared_size(const struct cache *cache);
void cache_shared_add_size(const struct cache *cache, int64_t bytes);

#endif
