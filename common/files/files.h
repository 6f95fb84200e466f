/* The service that answers with the documents of a directory. */
#ifndef COMMON_FILES_FILES_H
#define COMMON_FILES_FILES_H

#include "common/service.h"

struct files_settings {
    const char *root; /* the directory */
    bool list;        /* list directories that have no index */
    bool cache;       /* keep small documents in memory, */
    bool lasting;     /* from the start: the process serves many connections */
    bool status;      /* answer STATUS_PAGE_PATH with the counters */
};

struct files {
    int root; /* the directory's descriptor */
    bool list;
    bool wants_cache, lasting;
    bool status;
    struct file_cache *cache; /* NULL: none */
};

/* False if the root cannot be opened; it prints why. */
bool files_open(struct files *files, const struct files_settings *settings);
/* Makes the file cache of a process that serves many connections, when the rest of the server is
 * open. */
void files_start(struct files *files);
/* Makes the cache of a process made for one connection, when it waits for another request. */
void files_stay(struct files *files);
/* For a process of one thread that serves many connections, before it gives up rights: from now on
 * the kernel tells it of changes to what it keeps. */
void files_watch(struct files *files);
/* Frees the file cache. The root stays open until the process ends. */
void files_close(struct files *files);

extern const struct service service_files;

#endif
