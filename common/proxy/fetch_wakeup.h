/* Wakes the requests that wait for a fetch, in whichever process or thread they are. Each slot of
 * names (cache_shared.h) has a named pipe in the cache directory, at which they wait as for any
 * other descriptor, by poll or in an event loop. News is one byte, which nobody reads; the next
 * news has another pipe. Nothing is left to clean up when a process dies. Several names share a
 * slot: a request that is woken looks again.
 *
 * All who wait have the pipe open to write, too. Otherwise the kernel would wake all of them each
 * time that one of them closes it, since no writer is left. */
#ifndef COMMON_PROXY_FETCH_WAKEUP_H
#define COMMON_PROXY_FETCH_WAKEUP_H

#include "common/proxy/cache_file.h"

/* Begins to wait for news of that name. Returns a descriptor that becomes readable when there is
 * some, and stays so; -1 if there can be none. The caller looks afterwards whether there has been
 * some before. */
int fetch_wakeup_listen(const struct cache *cache, const char *name);
/* Tells those who wait that there is news. */
void fetch_wakeup_tell(const struct cache *cache, const char *name);
/* Returns true if somebody waits now, or did when there was news last. */
bool fetch_wakeup_is_awaited(const struct cache *cache, const char *name);

#endif
