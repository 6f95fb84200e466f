/* An event loop: waits for many connections at once, and steps those that are ready. */
#include "common/workers/event_loop.h"

#include "common/acceptor.h"
#include "common/base/memory_return.h"
#include "common/base/wakeup.h"
#include "common/connection.h"
#include "common/trace.h"
#include "common/workers/listen_permits.h"
#include "common/workers/timers.h"

#include <err.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* Without a free descriptor or memory, the loop does not listen for this long. */
#define REST_MILLISECONDS 100
/* How long a search that found no connection to end stays valid. */
#define FULL_MILLISECONDS (4 * SEATS_LOOK_MILLISECONDS)
/* A loop that has passed its permit on takes none for this long: it is awake, and would be faster
 * than the loop that is woken. */
#define PASSED_MILLISECONDS 10

struct client {
    struct watch watch;
    struct connection connection;
    struct timer timer;
    bool persistent; /* its connection was kept open after a request */
    int seat;
    int64_t since; /* in milliseconds */
};

_Static_assert(offsetof(struct client, watch) == 0, "an event's pointer is that of its client");

struct event_loop {
    struct worker *worker;
    struct poller poller;
    struct timers timers;
    struct moment now;
    struct exchange *spare; /* idle connections need none */
    struct memory_return memory_return;
    int memory_return_wait; /* milliseconds until its next review; -1: there is no need */
    int service_wait;       /* likewise, of the service */
    struct listen_permits permits;
    int64_t clients;
    int64_t persistent; /* clients whose connection was kept open after a request */
    bool pressed;       /* clients wait, and there may be no seat for them */
    bool listening;
    bool awaits_permit;
    bool stopping;
    bool closed;          /* it will not listen again */
    int64_t full_until;   /* until then, clients wait and no connection can be ended */
    int64_t yield_from;   /* when it may end connections again to make way */
    int64_t listen_from;  /* when it may listen again, in milliseconds */
    int64_t permit_from;  /* when it may take a permit again */
    int64_t listen_until; /* at a stop: until when it listens if no client comes */
};

/* Events carry the number of a listener's socket, one of these, or the address of a client. */
enum { EVENT_STOP = LISTENER_SOCKETS, EVENT_PERMIT, EVENT_PRESSURE, EVENT_CLIENT };
_Static_assert(EVENT_CLIENT <= POLLER_NOTHING, "a poller has a place for each source");

static bool add_source(struct event_loop *loop, int source, int descriptor, uint32_t events)
{
    return loop->poller.kind->add(&loop->poller, source, descriptor, events);
}

static void remove_source(struct event_loop *loop, int source, int descriptor)
{
    loop->poller.kind->remove(&loop->poller, source, descriptor);
}

/* ---- the listeners ---- */

/* If it cannot listen, it tries again later. */
static void listen_to(struct event_loop *loop, bool on)
{
    struct listener *listener = loop->worker->listener;
    bool good = true;

    for (int i = 0; i < listener->count; i++) {
        /* Of the workers that share the listener, a connection wakes one. */
        if (on)
            good = add_source(loop, i, listener->sockets[i], EPOLLIN | EPOLLEXCLUSIVE) && good;
        else
            remove_source(loop, i, listener->sockets[i]);
    }
    loop->listening = on;
    if (!good) {
        acceptor_warn_scarce(loop->worker->server, "cannot listen");
        listen_to(loop, false);
        loop->listen_from = loop->now.milliseconds + REST_MILLISECONDS;
    }
}

/* A free permit wakes one of the loops that wait for it. */
static void await_permit(struct event_loop *loop, bool on)
{
    int permits = listen_permits_descriptor(&loop->permits);

    if (on == loop->awaits_permit)
        return;
    if (!on)
        remove_source(loop, EVENT_PERMIT, permits);
    loop->awaits_permit = on && add_source(loop, EVENT_PERMIT, permits, EPOLLIN | EPOLLEXCLUSIVE);
}

static void take_permit(struct event_loop *loop)
{
    if (loop->closed || loop->permits.permitted || !listen_permits_take(&loop->permits))
        return;
    await_permit(loop, false);
    listen_to(loop, true);
}

/* ---- the clients ---- */

/* Stops waiting for a descriptor of the service, which may close it in any step. */
static void unwatch_other(struct event_loop *loop, struct client *client)
{
    if (client->watch.other >= 0)
        loop->poller.kind->unwatch_other(&loop->poller, &client->watch);
}

static bool watch(struct event_loop *loop, struct client *client, enum need need)
{
    struct watch *watch = &client->watch;
    int descriptor = client->connection.descriptor;

    watch->need = need;
    watch->awaits_socket = descriptor == watch->socket;
    if (descriptor < 0 || (watch->awaits_socket && watch->socket_need == need))
        return true; /* it waits for its deadline only, or its socket is awaited already */
    if (!watch->awaits_socket)
        watch->other = descriptor;
    return loop->poller.kind->watch(&loop->poller, watch);
}

static bool lend(struct event_loop *loop, struct client *client)
{
    struct exchange *exchange = loop->spare != NULL ? loop->spare : malloc(sizeof *exchange);

    loop->spare = NULL;
    if (exchange != NULL)
        connection_lend(&client->connection, exchange);
    return exchange != NULL;
}

static void keep_spare(struct event_loop *loop, struct exchange *exchange)
{
    if (loop->spare == NULL)
        loop->spare = exchange;
    else
        free(exchange);
}

static void end_client(struct event_loop *loop, struct client *client)
{
    struct exchange *exchange = client->connection.exchange;

    timers_stop(&loop->timers, &client->timer);
    connection_close(&client->connection);
    if (loop->poller.kind->end != NULL)
        loop->poller.kind->end(&loop->poller, &client->watch);
    seats_leave(&loop->worker->server->seats, client->seat);
    if (exchange != NULL)
        keep_spare(loop, exchange);
    loop->clients--;
    loop->persistent -= client->persistent;
    free(client);
    worker_left(loop->worker);
}

/* Steps a connection; first expires it if its deadline has passed. */
static void step(struct event_loop *loop, struct client *client, bool expired)
{
    struct connection *connection = &client->connection;
    enum need need = NEED_NOTHING;

    connection->now = loop->now;
    unwatch_other(loop, client); /* its number may be reused */
    if (connection->exchange != NULL || lend(loop, client)) {
        if (expired)
            connection_expire(connection);
        if (client->since + CONNECTION_TURN_MILLISECONDS <= loop->now.milliseconds)
            connection_yield(connection, loop->now.milliseconds < loop->full_until);
        need = connection_step(connection);
        scoreboard_add(loop->worker->slot, &connection->tally);
    }
    if (need == NEED_NOTHING || !watch(loop, client, need)) {
        end_client(loop, client);
        return;
    }
    if (connection->idle && !client->persistent) {
        client->persistent = true;
        loop->persistent++;
    }
    timers_set(&loop->timers, &client->timer, connection->deadline);
    keep_spare(loop, connection_reclaim(connection));
}

static void begin_client(struct event_loop *loop, int socket)
{
    const struct service_context *context = &loop->worker->server->context;
    uint32_t number = trace_number(context->trace, loop->worker->seat);
    const struct poller_kind *kind = loop->poller.kind;
    struct client *client = malloc(sizeof *client);

    if (client == NULL) {
        close(socket);
        seats_leave(&loop->worker->server->seats, loop->worker->seat);
        worker_left(loop->worker);
        return;
    }
    trace_note(context->trace, TRACE_BEGIN, number, 0);
    connection_open(&client->connection, context, socket, loop->now);
    client->connection.number = number;
    client->timer.link = NULL;
    client->seat = loop->worker->seat;
    client->watch = (struct watch){.socket = socket, .other = -1};
    client->persistent = false;
    client->since = loop->now.milliseconds;
    loop->clients++;
    memory_return_note(&loop->memory_return, loop->clients);
    if (kind->begin == NULL || kind->begin(&loop->poller, &client->watch, &client->connection))
        step(loop, client, false);
    else
        end_client(loop, client);
}

/* ---- giving way ---- */

static struct client *client_of(struct timer *timer)
{
    return (struct client *)(void *)((char *)timer - offsetof(struct client, timer));
}

/* Lists the clients that have waited long enough, the first to go first. */
static size_t list_waiting(const struct event_loop *loop, struct seats_candidate *candidates,
                           struct timer **all, size_t room)
{
    size_t found = timers_list(&loop->timers, all, room), count = 0;

    for (size_t i = 0; i < found; i++) {
        struct client *client = client_of(all[i]);
        int64_t standing = connection_standing(&client->connection, client->watch.need);
        if (seats_may_ask(standing, loop->now.milliseconds))
            candidates[count++] = (struct seats_candidate){standing, client};
    }
    seats_sort(candidates, count);
    return count;
}

/* Ends at most so many connections. Returns how many. */
static int end_waiting(struct event_loop *loop, int most)
{
    size_t room = (size_t)loop->clients, count;
    struct seats_candidate *candidates = calloc(room + 1, sizeof *candidates);
    struct timer **all = calloc(room + 1, sizeof(struct timer *));
    int ended = 0;

    count = candidates != NULL && all != NULL ? list_waiting(loop, candidates, all, room) : 0;
    for (size_t i = 0; i < count && ended < most; i++) {
        struct client *client = candidates[i].connection;
        client->connection.now = loop->now;
        if (!connection_give_way(&client->connection))
            continue;
        atomic_fetch_add(&loop->worker->server->board->gave_way, 1);
        scoreboard_add(loop->worker->slot, &client->connection.tally);
        end_client(loop, client);
        ended++;
    }
    free(all);
    free(candidates);
    return ended;
}

/* Ends as many connections as clients wait. If there is none to end, the other loops end some. */
static bool make_way(struct event_loop *loop)
{
    struct server *server = loop->worker->server;
    int most = seats_at_once((int64_t)server->limit);
    int waiting = loop->stopping ? 0 : listener_waiting(loop->worker->listener);

    loop->yield_from = loop->now.milliseconds + SEATS_LOOK_MILLISECONDS;
    if (waiting == 0)
        return false;
    if (end_waiting(loop, waiting < most ? waiting : most) > 0)
        return true;
    loop->full_until = loop->now.milliseconds + FULL_MILLISECONDS;
    if (server->options.workers > 1)
        wakeup_ring(server->pressure);
    return false;
}

/* Another loop has clients that wait, and none that it can end: this one ends its share. */
static void help(struct event_loop *loop)
{
    struct server *server = loop->worker->server;

    loop->pressed = false;
    if (loop->stopping || !acceptor_is_full(server))
        return;
    if (end_waiting(loop, seats_at_once((int64_t)server->limit / server->options.workers)) == 0)
        loop->full_until = loop->now.milliseconds + FULL_MILLISECONDS;
}

static void rest(struct event_loop *loop, int64_t until)
{
    listen_to(loop, false);
    loop->listen_from = until;
}

/* Accepts one connection. A second accept would mostly find none and cost more than the next event;
 * and with several workers the connection may be for another one. Returns 0, or an error. */
static int accept_one(struct event_loop *loop)
{
    int socket = worker_try(loop->worker);
    int error = socket < 0 ? errno : 0;

    if (socket >= 0) {
        begin_client(loop, socket);
        loop->listen_until = loop->now.milliseconds + worker_quiet(loop->worker);
    } else if (error == ESHUTDOWN) {
        listen_to(loop, false);
        loop->closed = true;
    } else if (error == EBUSY) {
        if (!make_way(loop))
            rest(loop, 0);
    } else if (error != EAGAIN) {
        rest(loop, loop->now.milliseconds + REST_MILLISECONDS);
    }
    return error;
}

/* A client wakes one of the loops that wait. So this loop accepts the client that may have woken
 * it: the others were not woken for it, and may be waiting by now. If it cannot, it adds a permit:
 * who begins to listen finds the clients that came before. */
static void leave_listeners(struct event_loop *loop)
{
    int error;

    listen_to(loop, false);
    error = accept_one(loop);
    if (error != 0 && error != EAGAIN && error != ESHUTDOWN)
        listen_permits_add(&loop->permits);
}

/* The loops of another server were not woken for the clients that woke this one. */
static void stop_listening(struct event_loop *loop)
{
    listen_to(loop, false);
    loop->closed = true;
    while (worker_is_relieved(loop->worker) && accept_one(loop) == 0)
        ;
}

/* A loop that rests keeps its permit until it listens again: a client that it could not accept
 * waits for it alone. */
static void review_permits(struct event_loop *loop)
{
    if (!loop->permits.permitted && !loop->closed && loop->now.milliseconds >= loop->permit_from)
        await_permit(loop, true);
    if (!loop->permits.permitted || !loop->listening || loop->stopping ||
        listen_permits_review(&loop->permits, loop->persistent, loop->now.milliseconds))
        return;
    leave_listeners(loop);
    loop->permit_from = loop->now.milliseconds + PASSED_MILLISECONDS;
}

/* ---- the loop ---- */

static void begin_stop(struct event_loop *loop)
{
    remove_source(loop, EVENT_STOP, loop->worker->server->stop);
    loop->stopping = true;
    services_drain(&loop->worker->server->services);
    loop->listen_until = loop->now.milliseconds + worker_quiet(loop->worker);
    if (!loop->permits.permitted && !worker_is_relieved(loop->worker))
        take_permit(loop); /* a permit that comes with the stop is for the last clients */
    loop->closed = !loop->permits.permitted;
    if (loop->closed)
        await_permit(loop, false);
}

static void wait_for_events(struct event_loop *loop)
{
    struct epoll_event events[POLLER_EVENTS];
    int patience = timers_wait(&loop->timers, loop->now.milliseconds);
    int count;

    patience = clock_shorter(patience, loop->memory_return_wait);
    patience = clock_shorter(patience, loop->service_wait);
    if (loop->stopping && loop->listening)
        patience = clock_shorter(patience, worker_quiet(loop->worker) + 1);
    else if (!loop->permits.permitted && !loop->awaits_permit && !loop->closed)
        patience = clock_shorter(patience, PASSED_MILLISECONDS);
    else if (loop->stopping || (loop->permits.permitted && !loop->listening))
        patience = clock_shorter(patience, SEATS_LOOK_MILLISECONDS);
    trace_note(loop->worker->server->context.trace, TRACE_WAIT, 0, 0);
    listen_permits_waits(&loop->permits);
    count = loop->poller.kind->wait(&loop->poller, events, patience);
    listen_permits_works(&loop->permits);
    loop->now = clock_now();
    scoreboard_note_wait(loop->worker->slot, count);
    /* A step can end its own client alone. To accept can end any, whose event may still be here:
     * so that comes last. */
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 == EVENT_STOP)
            begin_stop(loop);
        else if (events[i].data.u64 == EVENT_PERMIT)
            take_permit(loop);
        else if (events[i].data.u64 == EVENT_PRESSURE)
            loop->pressed = true;
        else if (events[i].data.u64 > POLLER_NOTHING)
            step(loop, events[i].data.ptr, false);
    }
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 >= EVENT_STOP || !loop->listening)
            continue;
        loop->worker->listener->next = (int)events[i].data.u64;
        accept_one(loop);
    }
}

/* Returns true if there is a seat, or one could be made. */
static bool has_seat(struct event_loop *loop)
{
    return worker_has_seat(loop->worker) ||
           (loop->now.milliseconds >= loop->yield_from && make_way(loop));
}

static void maintain(struct event_loop *loop)
{
    int64_t now = loop->now.milliseconds;
    struct timer *timer;

    while ((timer = timers_take(&loop->timers, now)) != NULL)
        step(loop, client_of(timer), true);
    if (loop->pressed)
        help(loop);
    review_permits(loop);
    loop->service_wait = services_review(&loop->worker->server->services, now, false);
    loop->memory_return_wait = memory_return_review(&loop->memory_return, loop->clients, now);
    /* At a stop, too: clients that came before it and found no seat are waiting. */
    if (loop->permits.permitted && !loop->closed && !loop->listening && now >= loop->listen_from &&
        has_seat(loop)) {
        listen_to(loop, true);
        loop->listen_until = now + worker_quiet(loop->worker);
    }
    if (worker_may_be_late(loop->worker))
        loop->listen_until = now + worker_quiet(loop->worker);
    if (loop->stopping && loop->listening &&
        (now > loop->listen_until || worker_is_relieved(loop->worker)))
        stop_listening(loop);
}

static bool open_sources(struct event_loop *loop)
{
    const struct server *server = loop->worker->server;

    return add_source(loop, EVENT_STOP, server->stop, EPOLLIN) &&
           add_source(loop, EVENT_PRESSURE, server->pressure, EPOLLIN | EPOLLET);
}

static void run(struct event_loop *loop)
{
    struct timer *timer;

    timers_open(&loop->timers, loop->now.milliseconds);
    listen_permits_open(&loop->permits, loop->worker);
    if (loop->permits.permitted)
        listen_to(loop, true);
    else
        await_permit(loop, true); /* nothing else may wake the loop */
    while ((!loop->closed || loop->clients > 0) && !worker_is_over(loop->worker)) {
        wait_for_events(loop);
        maintain(loop);
    }
    while ((timer = timers_any(&loop->timers)) != NULL)
        step(loop, client_of(timer), true);
    free(loop->spare);
}

void event_loop_run(struct worker *worker, const struct poller_kind *kind)
{
    struct event_loop loop = {
        .worker = worker,
        .poller.kind = kind,
        .now = clock_now(),
        .memory_return = {.pieces = worker->server->options.tls},
        .memory_return_wait = -1,
        .service_wait = -1,
    };

    if (!kind->open(&loop.poller, worker))
        return;
    if (open_sources(&loop))
        run(&loop);
    else
        warn("cannot make an event loop");
    kind->close(&loop.poller);
}
