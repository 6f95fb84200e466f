/* Limits what an attacker who has taken over the server could do. */
#ifndef COMMON_BASE_SANDBOX_H
#define COMMON_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* What the process makes after it has entered the sandbox. */
enum sandbox_makes {
    SANDBOX_NOTHING,
    SANDBOX_THREADS,
    SANDBOX_CHILDREN, /* short processes, which call sandbox_enter_child() */
    SANDBOX_WORKERS,  /* long ones, which call sandbox_enter_worker() */
};

/* The rights that a server needs. */
struct sandbox {
    int root;         /* a directory to read files below; -1: none */
    int cache;        /* a directory to make, read, write and remove files in; -1: none */
    bool connects;    /* it makes TCP connections */
    uint16_t port;    /* to this port only; 0: to any */
    bool datagrams;   /* it answers datagrams */
    bool log;         /* it replaces the file of its log */
    bool key_process; /* it asks another process for signatures */
    enum sandbox_makes makes;
    bool kills; /* a forbidden system call ends the process, instead of failing */
    /* Set by sandbox_enter(): */
    bool entered;
    int domain; /* the rules of Landlock, for workers; -1: none */
};

/* Takes all other rights from this process and its future children. Open descriptors are not
 * affected. If the kernel cannot do that, it prints a warning. */
void sandbox_enter(struct sandbox *sandbox);

/* For a worker process of a server that is in the sandbox: takes the right to make processes, to
 * signal other workers, and to trace them. */
void sandbox_enter_worker(const struct sandbox *sandbox);

/* For a child that serves one connection: takes the right to make processes. This is one system
 * call; a domain of its own would make the child cost 5% more. The filter of the server lets no
 * child signal or trace another one. */
void sandbox_enter_child(const struct sandbox *sandbox);

#endif
