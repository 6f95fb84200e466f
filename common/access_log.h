/* The access log, in the combined format. */
#ifndef COMMON_ACCESS_LOG_H
#define COMMON_ACCESS_LOG_H

#include "common/base/clock.h"
#include "common/base/helper_process.h"
#include "common/base/lock.h"
#include "common/http/date.h"
#include "common/http/request.h"
#include "common/net/transport.h"

#include <stdatomic.h>

/* The state that all processes of a server share. */
struct access_log_shared {
    _Atomic unsigned version; /* how often the log was opened again */
};

/* The log of one process. When it was opened again, each process takes it with its next line. */
struct access_log {
    const char *name;
    int file;
    struct lock lock;         /* of the threads of this process: held while `file` is replaced */
    _Atomic unsigned version; /* of `file` */
    struct access_log_shared *shared;
    int opener; /* the socket to the process that opens the log again; -1: none */
};

/* Opens a file for writing, with these additional flags; "-" is standard output. A named pipe needs
 * no reader. Returns -1 after it has printed why not. */
int access_log_open_file(const char *name, int flags);

/* Opens the log, and starts the process that opens it again, with this confinement. False after it
 * has printed why. */
bool access_log_open(struct access_log *log, const char *name,
                     const struct helper_process_confinement *confinement);
/* Opens the log again, for all processes: lines go to the file that has the name now. */
void access_log_reopen(struct access_log *log);
/* Takes the new file if another process has opened the log again. access_log_response() does this
 * first. */
void access_log_renew(struct access_log *log);
/* Returns a copy for a process that shares this memory but not the open files; `version` of the log
 * was open when that process was made. */
struct access_log access_log_copy(const struct access_log *log, unsigned version);
/* Ends the process that opens the log again. */
void access_log_close(struct access_log *log);

/* Writes the text if the reader takes it now; else drops it. */
bool access_log_write(int file, struct text text);

/* Writes the line of one response with a single write. */
void access_log_response(struct access_log *log, struct transport *client,
                         const struct request *request, int status, uint64_t bytes,
                         struct moment now);

#endif
