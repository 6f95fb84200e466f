/* Wakes the requests that wait for a fetch, by named pipes. */
#include "common/proxy/fetch_news.h"

#include "common/proxy/cache_name.h"
#include "common/proxy/cache_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int open_pipe(const struct cache *cache, const char *name, int flags)
{
    char pipe[CACHE_NAME_SIZE];

    cache_name_news(pipe, cache_shared_slot(name));
    return cache_file_open(cache, pipe, flags);
}

static bool make_pipe(const struct cache *cache, const char *name)
{
    char pipe[CACHE_NAME_SIZE];

    cache_name_news(pipe, cache_shared_slot(name));
    return mknodat(cache->directory, pipe, S_IFIFO | S_IRUSR | S_IWUSR, 0) == 0 || errno == EEXIST;
}

static bool is_pipe(const struct cache *cache, int file)
{
    struct stat status;

    return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == cache->owner;
}

int fetch_news_listen(const struct cache *cache, const char *name)
{
    int file = open_pipe(cache, name, O_RDONLY);

    if (file < 0 && errno == ENOENT && make_pipe(cache, name))
        file = open_pipe(cache, name, O_RDONLY);
    if (file >= 0 && !is_pipe(cache, file)) {
        close(file);
        return -1;
    }
    /* Whoever tells something later sees this; what was told before, the caller sees. */
    atomic_store(&cache->shared->listeners[cache_shared_slot(name)], 1);
    return file;
}

/* To open the pipe fails if nobody has it open to read. */
void fetch_news_tell(const struct cache *cache, const char *name)
{
    _Atomic uint32_t *listeners = &cache->shared->listeners[cache_shared_slot(name)];
    int file;

    if (atomic_load(listeners) == 0 || atomic_exchange(listeners, 0) == 0)
        return;
    file = open_pipe(cache, name, O_WRONLY);
    if (file >= 0)
        close(file);
}
