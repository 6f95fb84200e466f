/* Passes descriptors from one process to another. */
#ifndef COMMON_BASE_FD_PASSING_H
#define COMMON_BASE_FD_PASSING_H

#include <stdbool.h>

struct fd_passing {
    int giver; /* one end of a socket pair */
    int taker; /* the other end */
};

/* Makes the pair. False, with errno set, on failure. */
bool fd_passing_open(struct fd_passing *fd_passing);
/* Passes a descriptor, and closes it in this process. On failure it stays open. */
bool fd_passing_give(struct fd_passing *fd_passing, int descriptor);
/* Waits for the next descriptor; -1 after the last one, and if this process has no room for it. */
int fd_passing_take(struct fd_passing *fd_passing);
/* Returns true if a descriptor was given and not taken yet. */
bool fd_passing_pending(const struct fd_passing *fd_passing);
/* Announces that no process will pass a further descriptor. */
void fd_passing_end(struct fd_passing *fd_passing);

#endif
