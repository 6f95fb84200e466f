/* Locks the names of responses that are being fetched, and tells how their fetches go on. */
#include "common/proxy/fetch_lock.h"

#include "common/proxy/cache_name.h"
#include "common/proxy/cache_shared.h"
#include "common/proxy/fetch_wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The clock of one worker may be behind that of another by this many milliseconds. */
#define CLOCK_DIFFERENCE 1000

/* ---- files without a lock ---- */

struct fetch_lock_files {
    _Atomic int numbers[FETCH_LOCK_FILES]; /* 0: none; or one more than the descriptor */
};

/* Mapped, not allocated: a child process inherits it empty. Files that it inherited would share
 * their locks with the parent. */
void fetch_lock_open_files(struct cache *cache)
{
    void *memory = mmap(NULL, sizeof *cache->lock_files, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cache->lock_files = memory != MAP_FAILED ? memory : NULL;
}

void fetch_lock_close_files(struct cache *cache)
{
    struct fetch_lock_files *files = cache->lock_files;

    if (files == NULL)
        return;
    for (int i = 0; i < FETCH_LOCK_FILES; i++)
        if (files->numbers[i] > 0)
            close(files->numbers[i] - 1);
    munmap(files, sizeof *files);
    cache->lock_files = NULL;
}

/* Takes a kept file, or opens one. */
static int take_file(const struct cache *cache)
{
    struct fetch_lock_files *files = cache->lock_files;
    int number;

    for (int i = 0; files != NULL && i < FETCH_LOCK_FILES; i++)
        if (atomic_load(&files->numbers[i]) > 0 &&
            (number = atomic_exchange(&files->numbers[i], 0)) > 0)
            return number - 1;
    return cache_file_open(cache, CACHE_NAME_LOCKS, O_RDWR | O_CREAT);
}

/* Keeps a file that holds no lock, or closes it. */
static void put_file(const struct cache *cache, int file)
{
    struct fetch_lock_files *files = cache->lock_files;

    for (int i = 0; files != NULL && i < FETCH_LOCK_FILES; i++) {
        int none = 0;
        if (atomic_load(&files->numbers[i]) == 0 &&
            atomic_compare_exchange_strong(&files->numbers[i], &none, file + 1))
            return;
    }
    close(file);
}

/* ---- the lock ---- */

/* A lock is a byte of one file. An open file description holds it, so it also works between
 * threads, and needs no cleaning up. */
static struct flock lock_of(const char *name)
{
    return (struct flock){
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(cache_name_number(name) >> 2),
        .l_len = 1,
    };
}

int fetch_lock_take(const struct cache *cache, const char *name)
{
    struct flock lock = lock_of(name);
    int file = take_file(cache), error;

    if (file < 0)
        return FETCH_LOCK_NONE;
    if (fcntl(file, F_OFD_SETLK, &lock) == 0)
        return file;
    error = errno;
    put_file(cache, file);
    return error == EAGAIN || error == EACCES ? FETCH_LOCK_BUSY : FETCH_LOCK_NONE;
}

bool fetch_lock_is_taken(const struct cache *cache, const char *name)
{
    struct flock lock = lock_of(name);
    int file = take_file(cache);
    bool taken = file >= 0 && fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != (short)F_UNLCK;

    if (file >= 0)
        put_file(cache, file);
    return taken;
}

static void unlock(const struct cache *cache, const char *name, int file)
{
    struct flock lock = lock_of(name);

    lock.l_type = F_UNLCK;
    if (cache->lock_files != NULL && fcntl(file, F_OFD_SETLK, &lock) == 0)
        put_file(cache, file);
    else
        close(file);
}

void fetch_lock_release(const struct cache *cache, const char *name, int lock)
{
    if (lock < 0)
        return;
    /* Before it is free: whoever takes it next sees that somebody else had it. */
    atomic_fetch_add(&cache->shared->releases[cache_shared_slot(name)], 1);
    unlock(cache, name, lock);
    fetch_lock_note_news(cache, name);
}

void fetch_lock_note_news(const struct cache *cache, const char *name)
{
    atomic_fetch_add(&cache->shared->releases[cache_shared_slot(name)], 1);
    fetch_wakeup_tell(cache, name);
}

uint64_t fetch_lock_releases(const struct cache *cache, const char *name)
{
    return atomic_load(&cache->shared->releases[cache_shared_slot(name)]);
}

/* ---- progress ---- */

/* Returns a noted time. A time in the future is from before the machine was restarted. */
static int64_t sane(int64_t then, int64_t now)
{
    return then <= now + CLOCK_DIFFERENCE ? then : 0;
}

void fetch_lock_note_progress(const struct cache *cache, const char *name, int64_t now)
{
    atomic_store_explicit(&cache->shared->progress[cache_shared_slot(name)], now,
                          memory_order_relaxed);
}

int64_t fetch_lock_progress(const struct cache *cache, const char *name, int64_t now)
{
    return sane(atomic_load_explicit(&cache->shared->progress[cache_shared_slot(name)],
                                     memory_order_relaxed),
                now);
}

/* ---- how fetches end ---- */

/* A failure is its time, and its status in the low bits. */
#define STATUS_BITS 10

/* Notes something under a name. If two names with the same slot do so at once, one of them is not
 * found, or is found with the other's time, which is about the same. */
static void note(_Atomic uint64_t *number, _Atomic int64_t *what, const char *name, int64_t value)
{
    atomic_store(number, 0);
    atomic_store(what, value);
    atomic_store(number, cache_name_number(name));
}

/* Returns what was noted; 0 if that was under another name. */
static int64_t noted(_Atomic uint64_t *number, _Atomic int64_t *what, const char *name)
{
    int64_t value = atomic_load(what);

    return atomic_load(number) == cache_name_number(name) ? value : 0;
}

void fetch_lock_note_failure(const struct cache *cache, const char *name, int status, int64_t now)
{
    size_t slot = cache_shared_slot(name);

    note(&cache->shared->failure_numbers[slot], &cache->shared->failures[slot], name,
         now << STATUS_BITS | status);
}

int fetch_lock_failure(const struct cache *cache, const char *name, int64_t since, int64_t now)
{
    size_t slot = cache_shared_slot(name);
    int64_t failure =
        noted(&cache->shared->failure_numbers[slot], &cache->shared->failures[slot], name);

    if (failure <= 0 || sane(failure >> STATUS_BITS, now) < since)
        return 0;
    return (int)(failure & ((1 << STATUS_BITS) - 1));
}

/* An answer is its time, and how long it took in the low bits. */
#define TOOK_BITS 20
#define TOOK_MOST ((INT64_C(1) << TOOK_BITS) - 1)

void fetch_lock_note_answer(const struct cache *cache, const char *name, int64_t asked, int64_t now)
{
    size_t slot = cache_shared_slot(name);
    int64_t took = now - asked < TOOK_MOST ? now - asked : TOOK_MOST;

    note(&cache->shared->answer_numbers[slot], &cache->shared->answers[slot], name,
         now << TOOK_BITS | (took > 0 ? took : 0));
}

bool fetch_lock_is_answered(const struct cache *cache, const char *name, int64_t since,
                            int64_t asked_since, int64_t now)
{
    size_t slot = cache_shared_slot(name);
    int64_t answer =
        noted(&cache->shared->answer_numbers[slot], &cache->shared->answers[slot], name);
    int64_t then = sane(answer >> TOOK_BITS, now);

    return answer > 0 && then >= since && then - (answer & TOOK_MOST) >= asked_since;
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
