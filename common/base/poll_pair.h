/* Two descriptors that a caller can wait for as one. */
#ifndef COMMON_BASE_POLL_PAIR_H
#define COMMON_BASE_POLL_PAIR_H

/* A descriptor is waited for with one of these, both, or neither. */
#define POLL_PAIR_READ  1U
#define POLL_PAIR_WRITE 2U

struct poll_pair {
    int events; /* the epoll descriptor; -1: not made yet */
    int descriptors[2];
    unsigned wanted[2];
};

void poll_pair_start(struct poll_pair *poll_pair);
/* Returns a descriptor that is readable as soon as one of the two is ready; -1, with errno set, if
 * that fails. */
int poll_pair_watch(struct poll_pair *poll_pair, int first, unsigned first_wanted, int second,
                    unsigned second_wanted);
/* To be called before one of the two descriptors is closed. */
void poll_pair_close(struct poll_pair *poll_pair);

#endif
