/* What a server that was taken over could still do: as little as can be. */
#ifndef COMMON_BASE_SANDBOX_H
#define COMMON_BASE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* Takes on the user's identity for good. Says why not, and returns false. */
bool sandbox_become(const char *user);

/* What a server needs. */
struct sandbox {
    int root;      /* files below it are read; -1: none */
    int cache;     /* files in it are made, read, written and removed; -1: none */
    bool connects; /* by TCP: to wherever; */
    uint16_t port; /* unless it is to one port; or 0 */
};

/* Leaves this process, and those it will make, nothing but that: files that are open already stay
 * so. Where the kernel cannot do that, a warning. */
void sandbox_enter(const struct sandbox *sandbox);

#endif
