/* Small documents kept in memory, for models whose connections share one process. Nothing is taken
 * from the shelf unheeded: each time the file is asked for its state, and must be the same file,
 * unchanged to the nanosecond. That is a call for each step of its path, where open, fstat, read
 * and close are four. */
#ifndef COMMON_FILES_FILE_CACHE_H
#define COMMON_FILES_FILE_CACHE_H

#include "common/base/text.h"

#include <sys/stat.h>

/* Larger documents cost more to send than to open. */
#define FILE_CACHE_DOCUMENT_LIMIT 16384

struct file_cache;

/* One document. It stays as it is as long as somebody holds it. */
struct cached_file {
    _Atomic unsigned holders; /* the shelf itself is one */
    struct stat status;
    int64_t taken; /* in which second it was read */
    char *path;    /* behind the data */
    size_t path_length;
    char data[];
};

/* NULL if there is no memory. */
struct file_cache *file_cache_make(void);
/* Nobody uses it any more. */
void file_cache_free(struct file_cache *file_cache);

/* The document at the path below the root, held, if it is on the shelf and still the same; or NULL.
 * A change through a shared mapping may not show in the state of a file: so a document is read
 * again in each second that it is asked for. */
struct cached_file *file_cache_take(struct file_cache *file_cache, int root, struct text path,
                                    int64_t now);

/* Puts the document on the shelf and returns it, held. NULL if it does not fit, is reached by a
 * symbolic link, is being changed, or was changed so shortly before `now` that the next change
 * might not show. */
struct cached_file *file_cache_put(struct file_cache *file_cache, int root, struct text path,
                                   int file, const struct stat *status, int64_t now);

/* Lets go of a document. */
void file_cache_release(struct cached_file *document);

#endif
