/* The file cache: small documents in memory, for processes that answer many requests. A process of
 * one thread is told by the kernel when a file changes (file_watch.h), and uses a document without
 * a system call. Where that is impossible, the cache checks before each use that the file is the
 * same and unchanged to the nanosecond: one system call for each component of the path, instead of
 * open, fstat, read and close. */
#ifndef COMMON_FILES_FILE_CACHE_H
#define COMMON_FILES_FILE_CACHE_H

#include "common/base/text.h"

#include <sys/stat.h>

/* Larger documents cost more to send than to open: they are not cached. */
#define FILE_CACHE_DOCUMENT_LIMIT 16384

struct file_cache;

/* One document. It does not change while a reference to it exists. */
struct cached_file {
    _Atomic unsigned holders; /* references; the cache has one */
    struct stat status;
    int64_t taken;       /* the second in which it was read */
    bool settled;        /* the next change will change the timestamps */
    uint64_t watched_at; /* the count of changes when it was known to be watched and unchanged; 0:
                            it is not watched */
    char *path;          /* stored behind the data */
    size_t path_length;
    char data[];
};

/* Returns NULL if there is no memory. */
struct file_cache *file_cache_make(void);
/* From now on the kernel tells of changes. Only one thread of the process may use the cache. */
void file_cache_watch(struct file_cache *file_cache);
/* Frees the cache, which must not be used any more. */
void file_cache_free(struct file_cache *file_cache);

/* Returns a reference to the document at the path below the root; NULL if it is not in the cache,
 * or has changed. A write through a shared mapping may not change the timestamps: a document is
 * read again in each second that it is requested in. */
struct cached_file *file_cache_take(struct file_cache *file_cache, int root, struct text path,
                                    int64_t now);

/* Puts the document into the cache and returns a reference. NULL if it is too large, is reached by
 * a symbolic link, is being changed, or cannot be watched and was changed so shortly before `now`
 * that the next change might have the same timestamp. */
struct cached_file *file_cache_put(struct file_cache *file_cache, int root, struct text path,
                                   int file, const struct stat *status, int64_t now);

/* Gives a reference back. */
void file_cache_release(struct cached_file *document);

#endif
