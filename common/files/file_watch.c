/* Watches documents and the directories above them by inotify. */
#include "common/files/file_watch.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Nothing else uses this signal. It may be lost while one is pending: that one says the same. */
#define NEWS_SIGNAL SIGSTKFLT

/* A file can be written to or get other rights. If a file or directory moves, or is removed, its
 * path leads elsewhere; a removed file loses a link first, which counts as other rights. */
#define CHANGES ((uint32_t)(IN_MODIFY | IN_ATTRIB))
#define EVENTS  (CHANGES | IN_MOVE_SELF | IN_DELETE_SELF)

/* The most bytes of the queue that are read at once. */
#define EVENT_BYTES 4096

/* The handler gets no argument: each process has one flag. */
static volatile sig_atomic_t has_news;

static void note_news(int signal)
{
    (void)signal;
    has_news = 1;
}

/* SA_RESTART: no read, write or lock fails for the signal; poll() and epoll_wait() do. */
static bool ask_for_signals(int queue)
{
    const struct sigaction action = {.sa_handler = note_news, .sa_flags = SA_RESTART};
    sigset_t signals;
    int on = 1;

    sigemptyset(&signals);
    sigaddset(&signals, NEWS_SIGNAL);
    return sigaction(NEWS_SIGNAL, &action, NULL) == 0 &&
           sigprocmask(SIG_UNBLOCK, &signals, NULL) == 0 &&
           fcntl(queue, F_SETSIG, NEWS_SIGNAL) == 0 && fcntl(queue, F_SETOWN, getpid()) == 0 &&
           ioctl(queue, FIOASYNC, &on) == 0;
}

void file_watch_open(struct file_watch *watch)
{
    watch->count = 0;
    watch->watches = malloc(FILE_WATCH_LIMIT * sizeof watch->watches[0]);
    watch->queue = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->watches == NULL || watch->queue < 0 || !ask_for_signals(watch->queue))
        file_watch_close(watch);
}

void file_watch_close(struct file_watch *watch)
{
    if (watch->queue >= 0)
        close(watch->queue);
    watch->queue = -1;
    free(watch->watches);
    watch->watches = NULL;
}

/* Events that are still in the queue, such as the end of each watch, are read and forgotten. */
static void give_up(struct file_watch *watch)
{
    char events[EVENT_BYTES];

    for (int i = 0; i < watch->count; i++)
        inotify_rm_watch(watch->queue, watch->watches[i]);
    watch->count = 0;
    while (read(watch->queue, events, sizeof events) > 0)
        ;
}

/* Returns what the events in the buffer mean. */
static enum file_watch_news judge(const char *events, size_t length)
{
    enum file_watch_news news = FILE_WATCH_NOTHING;
    struct inotify_event event;

    for (size_t i = 0; i + sizeof event <= length; i += sizeof event + event.len) {
        memcpy(&event, events + i, sizeof event);
        if ((event.mask & ~(CHANGES | (uint32_t)IN_ISDIR)) != 0)
            return FILE_WATCH_LOST;
        news = FILE_WATCH_CHANGED;
    }
    return news;
}

/* The flag is cleared first. Events that come while the queue is read set it again, or join events
 * in the queue that are still to be read. Not inline: each request would touch pages of the stack
 * for the events that few read. */
static __attribute__((noinline)) enum file_watch_news read_news(struct file_watch *watch)
{
    enum file_watch_news news = FILE_WATCH_NOTHING;
    char events[EVENT_BYTES];
    ssize_t length;

    has_news = 0;
    while ((length = read(watch->queue, events, sizeof events)) > 0) {
        enum file_watch_news more = judge(events, (size_t)length);
        news = more > news ? more : news;
    }
    if (news == FILE_WATCH_LOST)
        give_up(watch);
    return news;
}

enum file_watch_news file_watch_ask(struct file_watch *watch)
{
    return has_news ? read_news(watch) : FILE_WATCH_NOTHING;
}

/* Returns true if the file system tells of every change. In others, such as network file systems,
 * another machine may change a file; and an overlay does not watch the files below it. */
static bool is_told_all(int file)
{
    struct statfs system;

    if (fstatfs(file, &system) < 0)
        return false;
    switch ((unsigned long)system.f_type) {
    case EXT4_SUPER_MAGIC: /* also of ext2 and ext3 */
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
        return true;
    default:
        return false;
    }
}

/* Returns true if the watch is one of those that are known, or is noted now. */
static bool note(struct file_watch *watch, int number)
{
    for (int i = 0; i < watch->count; i++)
        if (watch->watches[i] == number)
            return true;
    if (watch->count == FILE_WATCH_LIMIT) {
        inotify_rm_watch(watch->queue, number); /* this is news: all others are given up, too */
        return false;
    }
    watch->watches[watch->count++] = number;
    return true;
}

static bool add(struct file_watch *watch, int file)
{
    char path[40];
    int number;

    if (!is_told_all(file))
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    number = inotify_add_watch(watch->queue, path, EVENTS);
    return number >= 0 && note(watch, number);
}

static bool add_directory(struct file_watch *watch, int root, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int directory = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    bool added = directory >= 0 && add(watch, directory);

    if (directory >= 0)
        close(directory);
    return added;
}

bool file_watch_add(struct file_watch *watch, int root, struct text path, int file)
{
    char prefix[PATH_MAX];

    if (watch->queue < 0 || path.length >= sizeof prefix || !add(watch, root))
        return false;
    for (size_t i = 0; i < path.length; i++) {
        prefix[i] = '\0';
        if (path.data[i] == '/' && !add_directory(watch, root, prefix))
            return false;
        prefix[i] = path.data[i];
    }
    return add(watch, file);
}
