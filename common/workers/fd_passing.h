/* Passes descriptors from one process to another. */
#ifndef COMMON_WORKERS_FD_PASSING_H
#define COMMON_WORKERS_FD_PASSING_H

#include <stdbool.h>

struct channel {
    int giver; /* a socket each, at the two ends */
    int taker;
};

/* False, with errno set, if there is none to be had. */
bool channel_open(struct channel *channel);
/* Passes a descriptor on, and closes it here. */
void channel_give(struct channel *channel, int descriptor);
/* Waits for the next one; -1 when there will be none. */
int channel_take(struct channel *channel);
/* Whether there is one that was not taken yet. */
bool channel_holds(const struct channel *channel);
/* Says that there will be none, whoever else holds the giver's end. */
void channel_end(struct channel *channel);

#endif
