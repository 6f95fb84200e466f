/* Waits for two descriptors through one epoll descriptor. */
#include "common/base/poll_pair.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

void poll_pair_start(struct poll_pair *poll_pair)
{
    *poll_pair = (struct poll_pair){.events = -1, .descriptors = {-1, -1}};
}

/* Removes a descriptor that is not waited for: epoll would report its end all the same. */
static bool set(struct poll_pair *poll_pair, int place, int descriptor, unsigned wanted)
{
    struct epoll_event event = {.events = (wanted & POLL_PAIR_READ ? (uint32_t)EPOLLIN : 0) |
                                          (wanted & POLL_PAIR_WRITE ? (uint32_t)EPOLLOUT : 0)};
    bool known = poll_pair->descriptors[place] >= 0;

    if (!known && wanted == 0)
        return true;
    if (known && wanted == poll_pair->wanted[place])
        return true;
    poll_pair->wanted[place] = wanted;
    poll_pair->descriptors[place] = wanted != 0 ? descriptor : -1;
    return epoll_ctl(poll_pair->events,
                     wanted == 0 ? EPOLL_CTL_DEL
                     : known     ? EPOLL_CTL_MOD
                                 : EPOLL_CTL_ADD,
                     descriptor, &event) == 0;
}

int poll_pair_watch(struct poll_pair *poll_pair, int first, unsigned first_wanted, int second,
                    unsigned second_wanted)
{
    if (poll_pair->events < 0)
        poll_pair->events = epoll_create1(EPOLL_CLOEXEC);
    if (poll_pair->events < 0 || !set(poll_pair, 0, first, first_wanted) ||
        !set(poll_pair, 1, second, second_wanted))
        return -1;
    return poll_pair->events;
}

void poll_pair_close(struct poll_pair *poll_pair)
{
    if (poll_pair->events >= 0)
        close(poll_pair->events);
    poll_pair_start(poll_pair);
}
