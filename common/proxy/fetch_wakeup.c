/* Wakes the requests that wait for a fetch, by named pipes. */
#include "common/proxy/fetch_wakeup.h"

#include "common/proxy/cache_name.h"
#include "common/proxy/cache_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A slot says whether a request waits and whether one was woken by the last news, and holds the
 * number of the next news. */
#define LISTENING  UINT32_C(1)
#define WOKEN      UINT32_C(2)
#define NUMBER_ONE UINT32_C(4)

static bool is_pipe(const struct cache *cache, int file)
{
    struct stat status;

    return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == cache->owner;
}

/* Opens the pipe for the news of that number. */
static int open_pipe(const struct cache *cache, const char *name, uint32_t number, bool make)
{
    char pipe[CACHE_NAME_SIZE];
    int file;

    cache_name_news(pipe, cache_shared_slot(name), number);
    file = cache_file_open(cache, pipe, O_RDWR);
    if (file < 0 && errno == ENOENT && make &&
        (mknodat(cache->directory, pipe, S_IFIFO | S_IRUSR | S_IWUSR, 0) == 0 || errno == EEXIST))
        file = cache_file_open(cache, pipe, O_RDWR);
    return file;
}

/* Returns true if the file is a pipe, which is empty then. A byte in it is read away: it was meant
 * for an older number with the same last digit, whose pipe somebody still has open. */
static bool is_silent(const struct cache *cache, int file, bool *had_byte)
{
    char byte;
    ssize_t count = read(file, &byte, 1);

    *had_byte = count > 0;
    return count < 0 ? errno == EAGAIN : is_pipe(cache, file);
}

/* News wake a listener that is noted; the caller looks for earlier news itself. If news came
 * meanwhile, this tries again, and a byte that it read goes back into the pipe: it is for another
 * listener. */
int fetch_wakeup_listen(const struct cache *cache, const char *name)
{
    _Atomic uint32_t *news = &cache->shared->news[cache_shared_slot(name)];
    bool had_byte;

    for (;;) {
        uint32_t number = atomic_load(news) / NUMBER_ONE;
        int file = open_pipe(cache, name, number, true);
        bool silent = file >= 0 && is_silent(cache, file, &had_byte);
        if (silent && atomic_fetch_or(news, LISTENING) / NUMBER_ONE == number)
            return file;
        if (silent && had_byte)
            (void)!write(file, "", 1);
        if (file >= 0)
            close(file);
        if (!silent)
            return -1;
    }
}

/* Counts the news if somebody waits for them. Returns false if nobody does. */
static bool count(_Atomic uint32_t *news, uint32_t *number)
{
    uint32_t before = atomic_load(news), after;

    do {
        *number = before / NUMBER_ONE;
        after = before & LISTENING ? (*number + 1) * NUMBER_ONE | WOKEN : before & ~WOKEN;
    } while (after != before && !atomic_compare_exchange_weak(news, &before, after));
    return after / NUMBER_ONE != *number;
}

void fetch_wakeup_tell(const struct cache *cache, const char *name)
{
    uint32_t number;
    int file;

    if (!count(&cache->shared->news[cache_shared_slot(name)], &number))
        return;
    file = open_pipe(cache, name, number, false);
    if (file < 0)
        return;
    (void)!write(file, "", 1);
    close(file);
}

bool fetch_wakeup_is_awaited(const struct cache *cache, const char *name)
{
    return atomic_load(&cache->shared->news[cache_shared_slot(name)]) & (LISTENING | WOKEN);
}
