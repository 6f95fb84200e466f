/* Opens, reads and writes the files of the cache directory. */
#include "common/proxy/cache_file.h"

#include "common/proxy/cache_name.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The disk gives space in blocks of this size. */
#define BLOCK UINT64_C(4096)

/* Only its owner may write to the directory. */
static bool belongs_to(int directory, uid_t owner, const char *path)
{
    struct stat status;

    if (fstat(directory, &status) == 0 && status.st_uid == owner &&
        !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return true;
    warnx("the cache directory '%s' must belong to the user of the server, and nobody else may "
          "write to it: change the owner of it and of its files (see chown(1), --user)",
          path);
    return false;
}

/* Returns true if a file of the cache can have this name. */
static bool is_name(const char *name)
{
    return cache_name_is_valid(name) || strcmp(name, CACHE_NAME_SHARED) == 0 ||
           strcmp(name, CACHE_NAME_LOCKS) == 0 || strcmp(name, CACHE_NAME_SHARED_BEFORE) == 0;
}

/* Returns true if a file of the cache with this name is of this kind. */
static bool is_kind(const char *name, mode_t mode)
{
    return cache_name_is_news(name) ? S_ISFIFO(mode) : is_name(name) && S_ISREG(mode);
}

/* Gives one file of the cache to the owner. A file with another name, of another user, of another
 * kind, or that has another name elsewhere was not made by a cache. */
static bool give_file(int directory, const char *name, uid_t owner, gid_t group)
{
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    bool good =
        file >= 0 && fstat(file, &status) == 0 && is_kind(name, status.st_mode) &&
        status.st_nlink == 1 &&
        (status.st_uid == owner || (status.st_uid == geteuid() && fchown(file, owner, group) == 0));

    if (file >= 0)
        close(file);
    return good;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Returns false if there is a file that cannot be given. */
static bool give_files(int directory, uid_t owner, gid_t group)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;
    bool good = entries != NULL;

    while (good && (entry = readdir(entries)) != NULL)
        good = is_dots(entry->d_name) || give_file(directory, entry->d_name, owner, group);
    if (entries != NULL)
        closedir(entries);
    else if (copy >= 0)
        close(copy);
    return good;
}

/* Gives the directory of an earlier server, which ran as root, to the owner, before this process
 * becomes that user. Leaves alone a directory that others can write to: belongs_to() refuses it. */
static bool give_directory(int directory, uid_t owner, gid_t group)
{
    struct stat status;

    if (owner == geteuid() || fstat(directory, &status) < 0 || status.st_uid != geteuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) || !give_files(directory, owner, group))
        return true;
    return fchown(directory, owner, group) == 0;
}

int cache_file_open_directory(const char *path, uid_t owner, gid_t group)
{
    int directory;

    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        warn("cannot make the cache directory '%s'", path);
        return -1;
    }
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || !give_directory(directory, owner, group))
        warn("cannot open the cache directory '%s'", path);
    else if (belongs_to(directory, owner, path))
        return directory;
    if (directory >= 0)
        close(directory);
    return -1;
}

/* The mode of a file that is made with these flags; 0: none is made. */
static unsigned mode_of(int flags)
{
    if (flags & O_EXCL)
        return CACHE_FILE_MADE;
    return flags & O_CREAT ? S_IRUSR | S_IWUSR : 0;
}

int cache_file_open(const struct cache *cache, const char *name, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        .mode = mode_of(flags),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };

    return (int)syscall(SYS_openat2, cache->directory, name, &how, sizeof how);
}

int cache_file_make_unnamed(const struct cache *cache)
{
    return openat(cache->directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, CACHE_FILE_MADE);
}

/* An older kernel lets only root link a descriptor by itself, but anyone by its name. */
bool cache_file_link(const struct cache *cache, int file, const char *name)
{
    char path[sizeof "/proc/thread-self/fd/" + 3 * sizeof file];

    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file);
    return linkat(AT_FDCWD, path, cache->directory, name, AT_SYMLINK_FOLLOW) == 0;
}

bool cache_file_can_link(const struct cache *cache)
{
    int file = cache_file_make_unnamed(cache);
    char name[CACHE_NAME_SIZE];
    bool can = file >= 0 && cache_name_temporary(name) && cache_file_link(cache, file, name);

    if (can)
        unlinkat(cache->directory, name, 0);
    if (file >= 0)
        close(file);
    return can;
}

bool cache_file_read(int file, void *to, size_t size, uint64_t offset)
{
    char *space = to;

    while (size > 0) {
        ssize_t count = pread(file, space, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        space += count;
        size -= (size_t)count;
        offset += (uint64_t)count;
    }
    return true;
}

bool cache_file_write(int file, const void *from, size_t size, uint64_t offset)
{
    const char *bytes = from;

    while (size > 0) {
        ssize_t count = pwrite(file, bytes, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        bytes += count;
        size -= (size_t)count;
        offset += (uint64_t)count;
    }
    return true;
}

int64_t cache_file_disk_size(const struct stat *status)
{
    return (int64_t)(((uint64_t)status->st_size + BLOCK - 1) / BLOCK * BLOCK);
}

/* UTIME_NOW has the resolution of a tick: uses within one tick would look equally old. */
int64_t cache_file_touch(int file)
{
    struct timespec times[2] = {[1] = {.tv_nsec = UTIME_OMIT}};

    clock_gettime(CLOCK_REALTIME, &times[0]);
    futimens(file, times);
    return (int64_t)times[0].tv_sec * 1000000000 + times[0].tv_nsec;
}
