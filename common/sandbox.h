/* What a server that was taken over could still do: as little as can be. */
#ifndef COMMON_SANDBOX_H
#define COMMON_SANDBOX_H

#include <stdbool.h>

/* Takes on the user's identity for good. Says why not, and returns false. */
bool sandbox_become(const char *user);

/* Leaves this process, and those it will make, nothing but reading the files below `root`, or not
 * even that if it is -1: files that are open already stay so. Where the kernel cannot do that, a
 * warning. */
void sandbox_enter(int root);

#endif
