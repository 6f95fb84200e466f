/* The rights that a server needs in its sandbox. */
#ifndef COMMON_SANDBOX_RIGHTS_H
#define COMMON_SANDBOX_RIGHTS_H

#include "common/base/helper_process.h"
#include "common/model.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The helper processes that need little. */
enum sandbox_helper {
    SANDBOX_SIGNER,     /* holds the TLS key, or reads it */
    SANDBOX_NAMES,      /* asks name servers */
    SANDBOX_KEEPER,     /* keeps the files of a directory below a limit */
    SANDBOX_LOG_OPENER, /* opens the access log again */
};

struct sandbox {
    int root;                 /* a directory to read files below; -1: none */
    int writable;             /* a directory to make, read, write and remove files in; -1: none */
    bool watches;             /* the kernel tells it of changes to files */
    bool connects;            /* it makes TCP connections */
    uint16_t port;            /* to this port only; 0: to any */
    bool timers;              /* it waits for timers */
    bool datagrams;           /* it answers datagrams */
    bool log;                 /* it replaces the file of its log */
    bool reports;             /* it writes statistics or a trace */
    bool key_process;         /* it asks another process for signatures */
    enum served_by served_by; /* so that it makes those in the sandbox */
    bool rings;               /* its workers use rings */
    bool clones;              /* it makes them by clone() itself */
    bool template; /* a process beside the server makes them, and has a name of its own */
    bool kills;    /* a forbidden system call ends the process, instead of failing */
    /* Of a helper process: */
    enum sandbox_helper helper;
    enum helper_process_role role;
    pid_t server; /* that it may ask to replace itself; 0: none */
    /* Set by sandbox_enter(): */
    bool entered;
    int domain; /* the rules of Landlock, for workers; -1: none */
};

#endif
