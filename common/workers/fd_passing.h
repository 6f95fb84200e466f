/* Passes descriptors from one process to another. */
#ifndef COMMON_WORKERS_FD_PASSING_H
#define COMMON_WORKERS_FD_PASSING_H

#include <stdbool.h>

struct fd_passing {
    int giver; /* a socket each, at the two ends */
    int taker;
};

/* False, with errno set, if there is none to be had. */
bool fd_passing_open(struct fd_passing *channel);
/* Passes a descriptor on, and closes it here. */
void fd_passing_give(struct fd_passing *channel, int descriptor);
/* Waits for the next one; -1 when there will be none. */
int fd_passing_take(struct fd_passing *channel);
/* Whether there is one that was not taken yet. */
bool fd_passing_holds(const struct fd_passing *channel);
/* Says that there will be none, whoever else holds the giver's end. */
void fd_passing_end(struct fd_passing *channel);

#endif
