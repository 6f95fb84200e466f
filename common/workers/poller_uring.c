/* Waits by a ring: the kernel receives, sends and waits for descriptors, and says what has ended.
 */
#include "common/workers/poller_uring.h"

#include "common/net/transport_uring.h"

#include <errno.h>
#include <stdlib.h>

/* At the end, so long it waits for operations that it has cancelled. */
#define DRAIN_MILLISECONDS 100
#define DRAIN_ROUNDS       20

/* The operations of the ring for a client. They outlive it until the last completion. */
struct uring_client {
    struct uring_stream stream; /* first: completions carry its address */
    struct watch *watch;        /* NULL: the client has ended */
    struct uring_client *next;  /* among those that are ready */
    int polls;                  /* waits of the ring for its descriptor, old ones too */
    bool polling;               /* the client awaits one of them */
    bool ready;
};

struct source {
    int descriptor;
    uint32_t events;
};

struct poller_uring {
    struct uring *ring;
    bool streams;                 /* the ring can receive and send */
    uint64_t clients;             /* that hold a uring_client */
    struct uring_client *ready;   /* that have something to do, in the order of completions */
    struct uring_client **last;   /* the end of this list */
    uint64_t added, armed, ended; /* sources: a bit for each */
    struct source sources[POLLER_NOTHING];
};

/* ---- begin and end ---- */

static bool open_ring(struct poller *poller, struct worker *worker)
{
    if (worker->server->ring == NULL)
        return false; /* the reason has been printed */
    poller->ring = calloc(1, sizeof *poller->ring);
    if (poller->ring == NULL)
        return false;
    poller->ring->ring = worker->server->ring;
    poller->ring->streams = worker->server->ring->buffers != NULL;
    poller->ring->last = &poller->ring->ready;
    return true;
}

static void release(struct poller_uring *poller, struct uring_client *client)
{
    if (client->watch != NULL || client->ready || client->stream.in_flight > 0)
        return;
    poller->clients--;
    free(client);
}

static bool begin_client(struct poller *poller, struct watch *watch, struct connection *connection)
{
    struct poller_uring *own = poller->ring;
    struct uring_client *client = calloc(1, sizeof *client);

    watch->own = client;
    if (client == NULL)
        return false;
    own->clients++;
    client->watch = watch;
    client->stream.ring = own->ring;
    if (own->streams && connection->transport.kind->fits_ring)
        transport_uring_begin(&connection->transport, &client->stream, own->ring);
    return true;
}

static void stop_polling(struct uring_client *client)
{
    if (client->polls > 0)
        transport_uring_cancel(&client->stream, URING_OF_POLL);
    client->polling = false;
}

static void end_client(struct poller *poller, struct watch *watch)
{
    struct uring_client *client = watch->own;

    if (client == NULL)
        return;
    stop_polling(client);
    client->watch = NULL;
    release(poller->ring, client);
}

/* ---- the sources ---- */

static bool poll_descriptor(struct uring *ring, int descriptor, uint32_t events, uint64_t data)
{
    struct io_uring_sqe *entry = uring_entry(ring);

    if (entry == NULL)
        return false;
    entry->opcode = IORING_OP_POLL_ADD;
    entry->fd = descriptor;
    entry->poll32_events = events;
    entry->len = (events & EPOLLET) != 0 ? IORING_POLL_ADD_MULTI : 0;
    entry->user_data = data;
    return true;
}

static uint64_t data_of_source(int source)
{
    return (uint64_t)source << 2 | URING_OF_SOURCE;
}

/* The wait for the source begins with the next wait for events. A source wakes all processes that
 * wait for it: if it woke a single one, that could be a process that has died, whose waits the
 * kernel has not ended yet. */
static bool add(struct poller *poller, int source, int descriptor, uint32_t events)
{
    struct poller_uring *own = poller->ring;

    own->sources[source] = (struct source){descriptor, events & ~(uint32_t)EPOLLEXCLUSIVE};
    own->added |= UINT64_C(1) << source;
    return true;
}

static void drop(struct poller *poller, int source, int descriptor)
{
    struct poller_uring *own = poller->ring;
    uint64_t bit = UINT64_C(1) << source;
    struct io_uring_sqe *entry;

    (void)descriptor;
    own->added &= ~bit;
    own->ended &= ~bit;
    if ((own->armed & bit) == 0 || (entry = uring_entry(own->ring)) == NULL)
        return;
    entry->opcode = IORING_OP_ASYNC_CANCEL;
    entry->flags = IOSQE_CQE_SKIP_SUCCESS;
    entry->addr = data_of_source(source);
    entry->cancel_flags = IORING_ASYNC_CANCEL_ALL;
    entry->user_data = URING_NOBODY;
    own->armed &= ~bit;
}

/* Each source has one wait at a time. If the source is still ready, the new wait ends at once. */
static void arm_sources(struct poller_uring *own)
{
    uint64_t idle = own->added & ~own->armed;

    for (; idle != 0; idle &= idle - 1) {
        int source = __builtin_ctzll(idle);
        const struct source *it = &own->sources[source];
        if (poll_descriptor(own->ring, it->descriptor, it->events, data_of_source(source)))
            own->armed |= UINT64_C(1) << source;
    }
}

static void note_source(struct poller_uring *own, const struct io_uring_cqe *completion)
{
    uint64_t bit = UINT64_C(1) << (completion->user_data >> 2);

    if (completion->res == -ECANCELED) /* another wait for it may have begun */
        return;
    if ((completion->flags & IORING_CQE_F_MORE) == 0)
        own->armed &= ~bit;
    own->ended |= bit & own->added;
}

/* ---- the clients ---- */

static void make_ready(struct poller_uring *own, struct uring_client *client)
{
    if (client->ready)
        return;
    client->ready = true;
    client->next = NULL;
    *own->last = client;
    own->last = &client->next;
}

static bool poll_client(struct uring_client *client, int descriptor, enum need need)
{
    uint64_t data = (uintptr_t)&client->stream | URING_OF_POLL;

    stop_polling(client);
    client->polling = poll_descriptor(client->stream.ring, descriptor,
                                      need == NEED_READ ? EPOLLIN : EPOLLOUT, data);
    client->stream.in_flight += client->polling;
    client->polls += client->polling;
    return client->polling;
}

static bool watch_socket(struct poller_uring *own, struct uring_client *client)
{
    struct watch *watch = client->watch;
    struct uring_stream *stream = &client->stream;

    watch->socket_need = watch->need;
    if (!stream->is_open || (watch->need == NEED_READ && stream->unfit))
        return poll_client(client, watch->socket, watch->need);
    if (watch->need == NEED_WRITE)
        return stream->sending || poll_client(client, watch->socket, NEED_WRITE);
    if (stream->has_received)
        make_ready(own, client);
    return stream->has_received || stream->receiving ||
           transport_uring_receive(stream, watch->socket);
}

static bool watch_client(struct poller *poller, struct watch *watch)
{
    struct uring_client *client = watch->own;

    if (watch->awaits_socket)
        return watch_socket(poller->ring, client);
    watch->socket_need = NEED_NOTHING; /* it waits for one of them */
    watch->other_need = watch->need;
    return poll_client(client, watch->other, watch->need);
}

static void unwatch_other(struct poller *poller, struct watch *watch)
{
    (void)poller;
    stop_polling(watch->own);
    watch->other = -1;
    watch->other_need = NEED_NOTHING;
}

/* Returns true if the client waits for what has ended. */
static bool is_awaited(struct uring_client *client, const struct io_uring_cqe *completion)
{
    const struct watch *watch = client->watch;

    if (watch == NULL)
        return false;
    switch (completion->user_data & URING_OPERATION_MASK) {
    case URING_OF_RECEIVE:
        return watch->socket_need == NEED_READ;
    case URING_OF_SEND:
        return watch->socket_need == NEED_WRITE;
    default:
        client->polls--;
        if (completion->res == -ECANCELED || !client->polling)
            return false;
        client->polling = false;
        return true;
    }
}

static void note_client(struct poller_uring *own, const struct io_uring_cqe *completion)
{
    struct uring_client *client =
        (void *)(uintptr_t)(completion->user_data & ~(uint64_t)URING_OPERATION_MASK);

    transport_uring_note(&client->stream, completion, client->watch == NULL);
    if (is_awaited(client, completion))
        make_ready(own, client);
    release(own, client);
}

/* ---- waiting ---- */

static void note_completions(struct poller_uring *own)
{
    struct io_uring_cqe completion;

    while (uring_take(own->ring, &completion)) {
        if (completion.user_data == URING_NOBODY)
            continue;
        if ((completion.user_data & URING_OPERATION_MASK) == URING_OF_SOURCE)
            note_source(own, &completion);
        else
            note_client(own, &completion);
    }
}

static int take_sources(struct poller_uring *own, struct epoll_event *events)
{
    int count = 0;

    for (uint64_t ended = own->ended; ended != 0; ended &= ended - 1)
        events[count++].data.u64 = (uint64_t)__builtin_ctzll(ended);
    own->ended = 0;
    return count;
}

static struct uring_client *take_ready(struct poller_uring *own)
{
    struct uring_client *client = own->ready;

    own->ready = client->next;
    if (own->ready == NULL)
        own->last = &own->ready;
    client->ready = false;
    return client;
}

/* Events that do not fit come first in the next wait. */
static int wait_for_events(struct poller *poller, struct epoll_event events[POLLER_EVENTS],
                           int milliseconds)
{
    struct poller_uring *own = poller->ring;
    int count;

    arm_sources(own);
    if (own->ready == NULL || uring_has_entries(own->ring)) {
        uring_wait(own->ring, own->ready != NULL ? 0 : milliseconds);
        note_completions(own);
    }
    count = take_sources(own, events);
    while (count < POLLER_EVENTS && own->ready != NULL) {
        struct uring_client *client = take_ready(own);
        if (client->watch != NULL) {
            client->watch->socket_need = NEED_NOTHING;
            events[count++].data.ptr = client->watch;
        }
        release(own, client);
    }
    return count;
}

/* Waits for the last operations of clients that have ended. */
static void close_ring(struct poller *poller)
{
    struct poller_uring *own = poller->ring;
    struct epoll_event events[POLLER_EVENTS];

    own->added = 0;
    for (int i = 0; i < DRAIN_ROUNDS && own->clients > 0; i++)
        wait_for_events(poller, events, DRAIN_MILLISECONDS);
    free(own);
}

const struct poller_kind poller_uring = {
    .open = open_ring,
    .close = close_ring,
    .add = add,
    .remove = drop,
    .begin = begin_client,
    .end = end_client,
    .watch = watch_client,
    .unwatch_other = unwatch_other,
    .wait = wait_for_events,
};
