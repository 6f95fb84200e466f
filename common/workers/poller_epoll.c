/* Waits by epoll: the kernel says which descriptors are ready. */
#include "common/workers/poller_epoll.h"

#include <err.h>
#include <errno.h>
#include <unistd.h>

static bool open_epoll(struct poller *poller, struct worker *worker)
{
    (void)worker;
    poller->epoll = epoll_create1(0);
    if (poller->epoll < 0)
        warn("cannot make an event loop");
    return poller->epoll >= 0;
}

static void close_epoll(struct poller *poller)
{
    close(poller->epoll);
}

static bool add(struct poller *poller, int source, int descriptor, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)source};

    return epoll_ctl(poller->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static void drop(struct poller *poller, int source, int descriptor)
{
    (void)source;
    epoll_ctl(poller->epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

/* Added to the address for a descriptor that is not the client's socket. */
#define OTHER UINT64_C(1)

/* `known` is what the descriptor is in epoll for. */
static bool register_for(struct poller *poller, int descriptor, enum need *known, enum need wanted,
                         uint64_t data)
{
    struct epoll_event event = {.events = wanted == NEED_READ ? EPOLLIN : EPOLLOUT,
                                .data.u64 = data};
    int how = *known == NEED_NOTHING ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (*known == wanted)
        return true;
    *known = wanted;
    return epoll_ctl(poller->epoll, how, descriptor, &event) == 0;
}

/* Waits for one event of a descriptor of the service. A connection to an origin is kept and awaited
 * again, for another client: after its event it stays in epoll, without effect, until then or until
 * it is closed. */
static bool register_once(struct poller *poller, const struct watch *watch)
{
    struct epoll_event event = {
        .events = (watch->need == NEED_READ ? EPOLLIN : EPOLLOUT) | EPOLLONESHOT,
        .data.u64 = (uintptr_t)watch | OTHER,
    };

    return epoll_ctl(poller->epoll, EPOLL_CTL_MOD, watch->other, &event) == 0 ||
           (errno == ENOENT && epoll_ctl(poller->epoll, EPOLL_CTL_ADD, watch->other, &event) == 0);
}

/* While a client waits for another descriptor, its socket stays in epoll until it has an event:
 * mostly it has none, and removing and adding it would cost two system calls. */
static bool watch_client(struct poller *poller, struct watch *watch)
{
    uint64_t data = (uintptr_t)watch;

    if (watch->awaits_socket)
        return register_for(poller, watch->socket, &watch->socket_need, watch->need, data);
    watch->other_need = watch->need;
    return register_once(poller, watch);
}

static void unwatch_other(struct poller *poller, struct watch *watch)
{
    if (watch->other_need != NEED_NOTHING)
        epoll_ctl(poller->epoll, EPOLL_CTL_DEL, watch->other, NULL);
    watch->other = -1;
    watch->other_need = NEED_NOTHING;
}

/* Turns the data of an event into the address of a watch. A socket that its client does not await
 * is removed from epoll, and its event is nobody's: another event of the same wait may end the
 * client. */
static void find_client(struct poller *poller, struct epoll_event *event)
{
    struct watch *watch = event->data.ptr;

    if ((event->data.u64 & OTHER) != 0) {
        event->data.u64 &= ~OTHER;
        watch = event->data.ptr;
        watch->other_need = NEED_NOTHING;
    } else if (!watch->awaits_socket) {
        epoll_ctl(poller->epoll, EPOLL_CTL_DEL, watch->socket, NULL);
        watch->socket_need = NEED_NOTHING;
        event->data.u64 = POLLER_NOTHING;
    }
}

static int wait_for_events(struct poller *poller, struct epoll_event events[POLLER_EVENTS],
                           int milliseconds)
{
    int count = epoll_wait(poller->epoll, events, POLLER_EVENTS, milliseconds);

    for (int i = 0; i < count; i++)
        if (events[i].data.u64 > POLLER_NOTHING)
            find_client(poller, &events[i]);
    return count;
}

const struct poller_kind poller_epoll = {
    .open = open_epoll,
    .close = close_epoll,
    .add = add,
    .remove = drop,
    .watch = watch_client,
    .unwatch_other = unwatch_other,
    .wait = wait_for_events,
};
