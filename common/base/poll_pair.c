#include "common/base/poll_pair.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

void pair_start(struct pair *pair)
{
    *pair = (struct pair){.events = -1, .descriptors = {-1, -1}};
}

/* A descriptor that nothing is wanted of is left out: it would still tell of its end. */
static bool set(struct pair *pair, int place, int descriptor, unsigned wanted)
{
    struct epoll_event event = {.events = (wanted & PAIR_READ ? (uint32_t)EPOLLIN : 0) |
                                          (wanted & PAIR_WRITE ? (uint32_t)EPOLLOUT : 0)};
    bool known = pair->descriptors[place] >= 0;

    if (!known && wanted == 0)
        return true;
    if (known && wanted == pair->wanted[place])
        return true;
    pair->wanted[place] = wanted;
    pair->descriptors[place] = wanted != 0 ? descriptor : -1;
    return epoll_ctl(pair->events,
                     wanted == 0 ? EPOLL_CTL_DEL
                     : known     ? EPOLL_CTL_MOD
                                 : EPOLL_CTL_ADD,
                     descriptor, &event) == 0;
}

int pair_watch(struct pair *pair, int first, unsigned first_wanted, int second,
               unsigned second_wanted)
{
    if (pair->events < 0)
        pair->events = epoll_create1(EPOLL_CLOEXEC);
    if (pair->events < 0 || !set(pair, 0, first, first_wanted) ||
        !set(pair, 1, second, second_wanted))
        return -1;
    return pair->events;
}

void pair_close(struct pair *pair)
{
    if (pair->events >= 0)
        close(pair->events);
    pair_start(pair);
}
