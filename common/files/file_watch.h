/* Watches documents and the directories above them: the kernel says when one of them changes. So a
 * process of one thread need not ask before each use of a document that it holds.
 *
 * The order is strict. inotify puts its event into the queue before the call that changes a file
 * returns, and the queue sends a signal to this process. The signal is handled before any later
 * system call of this process returns, such as the one that receives a request. A process with
 * several threads has no such order: the signal may reach another thread first.
 *
 * inotify does not tell of writes through a shared mapping or by io_submit (libaio), nor of what is
 * mounted on a path: for these file_cache.c reads a document again each second. */
#ifndef COMMON_FILES_FILE_WATCH_H
#define COMMON_FILES_FILE_WATCH_H

#include "common/base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* The most inodes that are watched: if one more is needed, all watches are given up. */
#define FILE_WATCH_LIMIT 1024

struct file_watch {
    int queue; /* inotify; -1: nothing can be watched */
    int *watches;
    int count; /* of `watches` */
};

/* Begins to watch. If that is impossible, every file_watch_add() returns false. */
void file_watch_open(struct file_watch *watch);
void file_watch_close(struct file_watch *watch);

enum file_watch_news {
    FILE_WATCH_NOTHING, /* no file and no directory has changed since the last call */
    FILE_WATCH_CHANGED, /* some have; all paths lead where they led */
    FILE_WATCH_LOST,    /* a path may lead elsewhere, or news were lost: all watches are given up */
};
/* Tells what happened since the last call. Without news it makes no system call. */
enum file_watch_news file_watch_ask(struct file_watch *watch);

/* Watches the file, and each directory on its path from the root down. False if one of them cannot
 * be watched, or its file system does not tell of all changes. */
bool file_watch_add(struct file_watch *watch, int root, struct text path, int file);

#endif
