#include "common/workers/event_loop.h"

#include "common/connection.h"
#include "common/workers/listen_balance.h"
#include "common/workers/timers.h"

#include <err.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_TURN 64
/* Where a place or a descriptor is missing, the listeners are left alone for so long. */
#define REST_MILLISECONDS 100
/* Who passes its duty on is awake, and would have it back before the one that is woken comes. */
#define OFF_MILLISECONDS 10

struct client {
    struct connection connection;
    struct timer timer; /* first of all that is set for it */
    bool persistent;    /* it has kept its connection after a request */
    int watched;        /* descriptor; -1: none */
    uint32_t events;    /* that it is watched for */
};

struct event_loop {
    struct worker *worker;
    int events; /* epoll */
    struct timers timers;
    struct moment now;
    struct exchange *spare; /* what idle connections do without */
    struct listen_balance balance;
    int64_t clients;
    int64_t persistent; /* clients that have kept their connection after a request */
    bool listening;
    bool on_call; /* it waits for a duty */
    bool stopping;
    bool deaf;            /* it will not listen again */
    int64_t listen_from;  /* when listening is tried again */
    int64_t call_from;    /* when it can have a duty again */
    int64_t listen_until; /* once it is to stop: behind this, if no client comes before */
};

/* What events are told apart by, beside the listeners' numbers and the clients' addresses. */
enum { EVENT_STOP = LISTENER_SOCKETS, EVENT_CALL, EVENT_CLIENT };

/* ---- the listeners ---- */

static void listen_to(struct event_loop *loop, bool on)
{
    struct listener *listener = loop->worker->listener;

    for (int i = 0; i < listener->count; i++) {
        /* Where workers share it, a connection wakes one of them. */
        struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.u64 = (uint64_t)i};
        epoll_ctl(loop->events, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener->sockets[i], &event);
    }
    loop->listening = on;
}

/* Waits to be called to a duty; one that is free wakes one of those who do. */
static void await_call(struct event_loop *loop, bool on)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.u64 = EVENT_CALL};

    if (loop->on_call != on)
        epoll_ctl(loop->events, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                  listen_balance_call(&loop->balance), &event);
    loop->on_call = on;
}

static void answer_call(struct event_loop *loop)
{
    if (loop->deaf || !listen_balance_take(&loop->balance))
        return;
    await_call(loop, false);
    listen_to(loop, true);
}

static void review_balance(struct event_loop *loop)
{
    if (!loop->balance.on && !loop->deaf && loop->now.milliseconds >= loop->call_from)
        await_call(loop, true);
    if (!loop->balance.on || loop->stopping ||
        listen_balance_review(&loop->balance, loop->persistent, loop->now.milliseconds))
        return;
    if (loop->listening)
        listen_to(loop, false);
    loop->call_from = loop->now.milliseconds + OFF_MILLISECONDS;
}

/* ---- the clients ---- */

static void ignore(struct event_loop *loop, struct client *client)
{
    if (client->watched >= 0)
        epoll_ctl(loop->events, EPOLL_CTL_DEL, client->watched, NULL);
    client->watched = -1;
}

static bool watch(struct event_loop *loop, struct client *client, enum need need)
{
    int descriptor = client->connection.descriptor;
    struct epoll_event event = {.events = need == NEED_READ ? EPOLLIN : EPOLLOUT,
                                .data.ptr = client};
    int how = client->watched == descriptor ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (client->watched == descriptor && event.events == client->events)
        return true;
    if (client->watched != descriptor)
        ignore(loop, client);
    if (descriptor < 0)
        return true; /* it waits for its deadline alone */
    client->watched = descriptor;
    client->events = event.events;
    return epoll_ctl(loop->events, how, descriptor, &event) == 0;
}

static bool lend(struct event_loop *loop, struct client *client)
{
    struct exchange *exchange = loop->spare != NULL ? loop->spare : malloc(sizeof *exchange);

    loop->spare = NULL;
    if (exchange != NULL)
        connection_lend(&client->connection, exchange);
    return exchange != NULL;
}

static void keep(struct event_loop *loop, struct exchange *exchange)
{
    if (loop->spare == NULL)
        loop->spare = exchange;
    else
        free(exchange);
}

static void end(struct event_loop *loop, struct client *client)
{
    struct exchange *exchange = client->connection.exchange;

    timers_stop(&loop->timers, &client->timer);
    connection_close(&client->connection);
    if (exchange != NULL)
        keep(loop, exchange);
    loop->clients--;
    loop->persistent -= client->persistent;
    free(client);
    worker_left(loop->worker);
}

/* Has the connection go on as far as it can; if it is expired, first with that. */
static void step(struct event_loop *loop, struct client *client, bool expired)
{
    struct connection *connection = &client->connection;
    enum need need = NEED_NOTHING;

    connection->now = loop->now;
    /* Another descriptor than its own may be closed in this step, and its number used again. */
    if (client->watched != connection->transport.socket)
        ignore(loop, client);
    if (connection->exchange != NULL || lend(loop, client)) {
        if (expired)
            connection_expire(connection);
        need = connection_step(connection);
        scoreboard_add(loop->worker->slot, &connection->tally);
    }
    if (need == NEED_NOTHING || !watch(loop, client, need)) {
        end(loop, client);
        return;
    }
    if (connection->idle && !client->persistent) {
        client->persistent = true;
        loop->persistent++;
    }
    timers_set(&loop->timers, &client->timer, connection->deadline);
    keep(loop, connection_reclaim(connection));
}

static void welcome(struct event_loop *loop, int socket)
{
    struct client *client = malloc(sizeof *client);

    if (client == NULL) {
        close(socket);
        worker_left(loop->worker);
        return;
    }
    connection_open(&client->connection, &loop->worker->server->context, socket, loop->now);
    client->timer.link = NULL;
    client->watched = -1;
    client->persistent = false;
    loop->clients++;
    step(loop, client, false);
}

/* One at a time: to ask for another one that is mostly not there costs more than to be told of it,
 * and where there are several workers it may be theirs. */
static void accept_one(struct event_loop *loop)
{
    int socket = worker_try(loop->worker);

    if (socket >= 0) {
        welcome(loop, socket);
        loop->listen_until = loop->now.milliseconds + worker_quiet(loop->worker);
    } else if (errno != EAGAIN) {
        listen_to(loop, false);
        loop->listen_from = errno == EBUSY ? 0 : loop->now.milliseconds + REST_MILLISECONDS;
    }
}

/* ---- the loop ---- */

static void begin_stop(struct event_loop *loop)
{
    epoll_ctl(loop->events, EPOLL_CTL_DEL, loop->worker->server->stop, NULL);
    loop->stopping = true;
    loop->listen_until = loop->now.milliseconds + worker_quiet(loop->worker);
    if (!loop->balance.on)
        answer_call(loop); /* it may come with the stop, and is for the last clients then */
    loop->deaf = !loop->balance.on;
    if (loop->deaf)
        await_call(loop, false);
}

static int shorter(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void wait_for_events(struct event_loop *loop)
{
    struct epoll_event events[EVENTS_TURN];
    int patience = timers_wait(&loop->timers, loop->now.milliseconds);
    int count;

    if (loop->stopping && loop->listening)
        patience = shorter(patience, worker_quiet(loop->worker) + 1);
    else if (!loop->balance.on && !loop->on_call && !loop->deaf)
        patience = shorter(patience, OFF_MILLISECONDS);
    else if (loop->stopping || (loop->balance.on && !loop->listening))
        patience = shorter(patience, REST_MILLISECONDS);
    count = epoll_wait(loop->events, events, EVENTS_TURN, patience);
    loop->now = clock_now();
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 == EVENT_STOP)
            begin_stop(loop);
        else if (events[i].data.u64 == EVENT_CALL)
            answer_call(loop);
        else if (events[i].data.u64 >= EVENT_CLIENT)
            step(loop, events[i].data.ptr, false);
    }
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 >= EVENT_STOP || !loop->listening)
            continue;
        loop->worker->listener->next = (int)events[i].data.u64;
        accept_one(loop);
    }
}

static struct client *client_of(struct timer *timer)
{
    return (struct client *)(void *)((char *)timer - offsetof(struct client, timer));
}

static void look_after(struct event_loop *loop)
{
    int64_t now = loop->now.milliseconds;
    struct timer *timer;

    while ((timer = timers_take(&loop->timers, now)) != NULL)
        step(loop, client_of(timer), true);
    review_balance(loop);
    /* Also at a stop: whoever came before it and found no place is still waiting. */
    if (loop->balance.on && !loop->deaf && !loop->listening && now >= loop->listen_from &&
        worker_has_place(loop->worker)) {
        listen_to(loop, true);
        loop->listen_until = now + worker_quiet(loop->worker);
    }
    if (loop->stopping && loop->listening && now > loop->listen_until) {
        listen_to(loop, false);
        loop->deaf = true;
    }
}

void event_loop_run(struct worker *worker)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = EVENT_STOP};
    struct event_loop loop = {.worker = worker, .now = clock_now(), .events = epoll_create1(0)};
    struct timer *timer;

    if (loop.events < 0) {
        warn("cannot make an event loop");
        return;
    }
    timers_open(&loop.timers, loop.now.milliseconds);
    epoll_ctl(loop.events, EPOLL_CTL_ADD, worker->server->stop, &event);
    listen_balance_open(&loop.balance, worker);
    if (loop.balance.on)
        listen_to(&loop, true);
    else
        await_call(&loop, true); /* at once: there may be nothing else to wake it */
    while (!loop.deaf || loop.clients > 0) {
        if (worker_is_over(worker))
            break;
        wait_for_events(&loop);
        look_after(&loop);
    }
    while ((timer = timers_any(&loop.timers)) != NULL)
        step(&loop, client_of(timer), true);
    free(loop.spare);
}
