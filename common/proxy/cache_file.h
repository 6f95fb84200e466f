/* The cache directory, and its files as bytes. */
#ifndef COMMON_PROXY_CACHE_FILE_H
#define COMMON_PROXY_CACHE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A larger body is not copied when the record of its entry is updated: see cache_entry.h. */
#define CACHE_COPY_LIMIT (64 * 1024)

struct cache_keeper;
struct cache_memory;
struct cache_shared;
struct fetch_lock_files;

struct cache {
    int directory;
    uid_t owner;                    /* of all files in it */
    uint64_t limit;                 /* bytes of all entries */
    bool links;                     /* files in it can be made without a name, and get one later */
    bool gateway;                   /* of a reverse proxy: CDN-Cache-Control is for it */
    struct cache_shared *shared;    /* by all processes that use the directory */
    _Atomic uint64_t *sound_blocks; /* see block_checksums.h; by those of this server */
    struct cache_memory *recent;    /* see cache_memory.h; of this process alone */
    struct cache_keeper *keeper;    /* see cache_keeper.h; NULL: each process trims it itself */
    struct fetch_lock_files *lock_files; /* see fetch_lock.h; of this process alone */
};

/* Opens the directory, and makes it if there is none. A directory of this process's user that has
 * nothing but files of a cache is given to the owner. On failure it prints why and returns -1. */
int cache_file_open_directory(const char *path, uid_t owner, gid_t group);

/* The mode of a file that this process makes anew, with a bit that stays until the entry in it gets
 * a newer record (cache_entry.h). No other file has it. */
#define CACHE_FILE_MADE (S_ISVTX | S_IRUSR | S_IWUSR)

/* Opens a file of the directory. Returns -1 with errno set if it cannot. */
int cache_file_open(const struct cache *cache, const char *name, int flags);
/* Makes a file without a name. cache_file_link() gives it one, unless another file has it. */
int cache_file_make_unnamed(const struct cache *cache);
bool cache_file_link(const struct cache *cache, int file, const char *name);
/* Returns true if both work here: not each file system has such files, and /proc may be missing. */
bool cache_file_can_link(const struct cache *cache);
bool cache_file_read(int file, void *to, size_t size, uint64_t offset);
bool cache_file_write(int file, const void *from, size_t size, uint64_t offset);

/* Bytes that the file takes on the disk. */
int64_t cache_file_disk_size(const struct stat *status);
/* Sets the time of last use, which is that of access. Returns it in nanoseconds since 1970. */
int64_t cache_file_touch(int file);

#endif
