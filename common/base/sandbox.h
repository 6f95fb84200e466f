/* Limits what an attacker who has taken over the server could do. */
#ifndef COMMON_BASE_SANDBOX_H
#define COMMON_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* The rights that a server needs. */
struct sandbox {
    int root;      /* a directory to read files below; -1: none */
    int cache;     /* a directory to make, read, write and remove files in; -1: none */
    bool connects; /* it makes TCP connections */
    uint16_t port; /* to this port only; 0: to any */
};

/* Takes all other rights from this process and its future children. Open descriptors are not
 * affected. If the kernel cannot do that, it prints a warning. */
void sandbox_enter(const struct sandbox *sandbox);

#endif
