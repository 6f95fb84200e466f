/* Wakes the requests that wait for a fetch, by named pipes. */
#include "common/proxy/fetch_news.h"

#include "common/proxy/cache_name.h"
#include "common/proxy/cache_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* What a slot holds: whether a request waits; whether one was woken by the last news; and the
 * number of the next ones. */
#define LISTENING  UINT32_C(1)
#define WOKEN      UINT32_C(2)
#define NUMBER_ONE UINT32_C(4)

static bool is_pipe(const struct cache *cache, int file)
{
    struct stat status;

    return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == cache->owner;
}

/* Opens the pipe for the news of that number, and makes it if there is none. */
static int open_pipe(const struct cache *cache, const char *name, uint32_t number)
{
    char pipe[CACHE_NAME_SIZE];
    int file;

    cache_name_news(pipe, cache_shared_slot(name), number);
    file = cache_file_open(cache, pipe, O_RDWR);
    if (file < 0 && errno == ENOENT &&
        (mknodat(cache->directory, pipe, S_IFIFO | S_IRUSR | S_IWUSR, 0) == 0 || errno == EEXIST))
        file = cache_file_open(cache, pipe, O_RDWR);
    if (file < 0 || is_pipe(cache, file))
        return file;
    close(file);
    return -1;
}

/* Returns true if the number is still that of the next news. Then a byte in the pipe is an old one,
 * of a number with the same last digit, which somebody still has open: it is removed. */
static bool is_next(_Atomic uint32_t *news, uint32_t number, int file)
{
    char byte;
    ssize_t count = read(file, &byte, 1);

    if (atomic_fetch_or(news, LISTENING) / NUMBER_ONE == number)
        return true;
    if (count > 0)
        (void)!write(file, &byte, 1); /* it is for others */
    return false;
}

/* Whoever tells something after the request is noted sees that; what was told before, the caller
 * sees. */
int fetch_news_listen(const struct cache *cache, const char *name)
{
    _Atomic uint32_t *news = &cache->shared->news[cache_shared_slot(name)];
    uint32_t number = atomic_load(news) / NUMBER_ONE;
    int file = open_pipe(cache, name, number);

    while (file >= 0 && !is_next(news, number, file)) {
        close(file);
        number = atomic_load(news) / NUMBER_ONE;
        file = open_pipe(cache, name, number);
    }
    return file;
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

void fetch_news_tell(const struct cache *cache, const char *name)
{
    uint32_t number;
    int file;

    if (!count(&cache->shared->news[cache_shared_slot(name)], &number))
        return;
    file = open_pipe(cache, name, number);
    if (file < 0)
        return;
    (void)!write(file, "", 1);
    close(file);
}

bool fetch_news_has_crowd(const struct cache *cache, const char *name)
{
    return atomic_load(&cache->shared->news[cache_shared_slot(name)]) & (LISTENING | WOKEN);
}
