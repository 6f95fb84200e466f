/* Two descriptors that are waited for as one. */
#ifndef COMMON_BASE_POLL_PAIR_H
#define COMMON_BASE_POLL_PAIR_H

/* What a descriptor is waited for: one of these, both, or neither. */
#define PAIR_READ  1U
#define PAIR_WRITE 2U

struct pair {
    int events; /* epoll; -1: not made yet */
    int descriptors[2];
    unsigned wanted[2];
};

void pair_start(struct pair *pair);
/* The descriptor that is readable as soon as one of the two is ready. -1, with errno set, if there
 * is none. */
int pair_watch(struct pair *pair, int first, unsigned first_wanted, int second,
               unsigned second_wanted);
/* Before a descriptor that it knows is closed. */
void pair_close(struct pair *pair);

#endif
