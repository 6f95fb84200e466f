/* Keeps small documents in memory for as long as their files are unchanged. */
#include "common/files/file_cache.h"

#include "common/files/file_watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES 64
/* Documents with longer paths are not cached. */
#define PATH_SHORT 256
/* Timestamps of file systems have a resolution of up to two seconds: two changes within that look
 * like one. */
#define SETTLED_SECONDS 3

struct file_cache {
    pthread_mutex_t lock; /* protects `places` */
    struct cached_file *places[PLACES];
    struct file_watch watch;
    uint64_t changes; /* counts from 1 how often the kernel told of some */
};

struct file_cache *file_cache_make(void)
{
    struct file_cache *file_cache = calloc(1, sizeof *file_cache);

    if (file_cache == NULL)
        return NULL;
    pthread_mutex_init(&file_cache->lock, NULL);
    file_cache->watch.queue = -1;
    file_cache->changes = 1;
    return file_cache;
}

void file_cache_watch(struct file_cache *file_cache)
{
    file_watch_open(&file_cache->watch);
}

static void drop_all(struct file_cache *file_cache)
{
    for (size_t i = 0; i < PLACES; i++) {
        if (file_cache->places[i] != NULL)
            file_cache_release(file_cache->places[i]);
        file_cache->places[i] = NULL;
    }
}

void file_cache_free(struct file_cache *file_cache)
{
    drop_all(file_cache);
    file_watch_close(&file_cache->watch);
    pthread_mutex_destroy(&file_cache->lock);
    free(file_cache);
}

/* FNV-1a */
static size_t place_of(struct text path)
{
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < path.length; i++)
        hash = (hash ^ (unsigned char)path.data[i]) * 16777619U;
    return hash % PLACES;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* st_ctim also changes with the permissions. */
static bool is_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           is_same_time(a->st_mtim, b->st_mtim) && is_same_time(a->st_ctim, b->st_ctim);
}

/* Returns a reference to the document of that path; NULL if it is not in the cache. */
static struct cached_file *hold(struct file_cache *file_cache, struct text path)
{
    struct cached_file *found;

    pthread_mutex_lock(&file_cache->lock);
    found = file_cache->places[place_of(path)];
    if (found != NULL && text_equal(path, (struct text){found->path, found->path_length}))
        atomic_fetch_add(&found->holders, 1);
    else
        found = NULL;
    pthread_mutex_unlock(&file_cache->lock);
    return found;
}

/* Returns true if the path leads to the same, unchanged file without a symbolic link, which could
 * lead out of the root. */
static bool leads_to(int root, struct text path, const struct stat *wanted)
{
    char prefix[PATH_SHORT];
    struct stat status;

    for (size_t i = 0; i <= path.length; i++) {
        bool whole = i == path.length;
        if (!whole && path.data[i] != '/') {
            prefix[i] = path.data[i];
            continue;
        }
        prefix[i] = '\0';
        if (fstatat(root, prefix, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !(whole ? is_unchanged(&status, wanted) : S_ISDIR(status.st_mode)))
            return false;
        prefix[i] = '/';
    }
    return true;
}

/* Heeds what the kernel has told. A process that has no watches is not told anything. */
static void heed_changes(struct file_cache *file_cache)
{
    switch (file_watch_ask(&file_cache->watch)) {
    case FILE_WATCH_NOTHING:
        break;
    case FILE_WATCH_CHANGED:
        file_cache->changes++;
        break;
    case FILE_WATCH_LOST:
        file_cache->changes++;
        drop_all(file_cache);
        break;
    }
}

/* A watched document is checked once after each change of any. */
static bool is_good(struct file_cache *file_cache, int root, struct text path,
                    struct cached_file *document)
{
    if (document->watched_at == file_cache->changes)
        return true;
    if (!document->settled || !leads_to(root, path, &document->status))
        return false;
    if (document->watched_at != 0)
        document->watched_at = file_cache->changes;
    return true;
}

struct cached_file *file_cache_take(struct file_cache *file_cache, int root, struct text path,
                                    int64_t now)
{
    struct cached_file *found;

    heed_changes(file_cache);
    found = hold(file_cache, path);
    if (found == NULL || (found->taken == now && is_good(file_cache, root, path, found)))
        return found;
    file_cache_release(found);
    return NULL;
}

static bool is_settled(const struct stat *status, int64_t now)
{
    return status->st_mtim.tv_sec + SETTLED_SECONDS <= now &&
           status->st_ctim.tv_sec + SETTLED_SECONDS <= now;
}

static struct cached_file *read_document(struct text path, int file, const struct stat *status)
{
    size_t size = (size_t)status->st_size;
    struct cached_file *document = malloc(sizeof *document + size + path.length + 1);
    struct stat after;

    if (document == NULL)
        return NULL;
    if (pread(file, document->data, size, 0) != (ssize_t)size || fstat(file, &after) < 0 ||
        !is_unchanged(status, &after)) {
        free(document);
        return NULL;
    }
    atomic_init(&document->holders, 2);
    document->status = *status;
    document->path = document->data + size;
    document->path_length = path.length;
    memcpy(document->path, path.data, path.length);
    document->path[path.length] = '\0';
    return document;
}

struct cached_file *file_cache_put(struct file_cache *file_cache, int root, struct text path,
                                   int file, const struct stat *status, int64_t now)
{
    struct cached_file *document, *before;
    struct cached_file **place = &file_cache->places[place_of(path)];
    bool settled = is_settled(status, now), watched;

    if (path.length == 0 || path.length >= PATH_SHORT ||
        status->st_size > FILE_CACHE_DOCUMENT_LIMIT)
        return NULL;
    /* Watched first, then read: no change between is missed. */
    watched = file_watch_add(&file_cache->watch, root, path, file);
    if ((!settled && !watched) || !leads_to(root, path, status))
        return NULL;
    document = read_document(path, file, status);
    if (document == NULL)
        return NULL;
    document->taken = now;
    document->settled = settled;
    document->watched_at = watched ? file_cache->changes : 0;
    pthread_mutex_lock(&file_cache->lock);
    before = *place;
    *place = document;
    pthread_mutex_unlock(&file_cache->lock);
    if (before != NULL)
        file_cache_release(before);
    return document;
}

void file_cache_release(struct cached_file *document)
{
    if (atomic_fetch_sub(&document->holders, 1) == 1)
        free(document);
}
