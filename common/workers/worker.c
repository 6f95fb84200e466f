/* Takes connections for a worker, and counts them. */
#include "common/workers/worker.h"

#include "common/acceptor.h"
#include "common/trace.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A worker may die at any point. The server then subtracts the worker's count of connections from
 * its own. That count is never less than what the worker has added: no connection is counted for
 * ever. */
static void claim(struct worker *worker)
{
    atomic_fetch_add(&worker->slot->active, 1);
}

static void disclaim(struct worker *worker)
{
    atomic_fetch_sub(&worker->slot->active, 1);
}

struct worker worker_begin(struct server *server, int number)
{
    trace_note(server->context.trace, TRACE_START, 0, (uint64_t)number + 1);
    trace_note(server->context.trace, TRACE_WAIT, 0, 0);
    return (struct worker){
        .server = server,
        .listener = server_listener(server, number),
        .slot = &server->board->slots[number],
        .number = number,
        .seat = -1,
        .events = -1,
    };
}

void worker_end(struct worker *worker)
{
    if (worker->events >= 0)
        close(worker->events);
    trace_note(worker->server->context.trace, TRACE_END, 0, 0);
}

/* Returns false, with errno set, if the address of the client has too many connections: then the
 * connection is closed. */
static bool take_seat(struct worker *worker, int socket, const union address *client)
{
    acceptor_welcome(worker->server, socket, client);
    worker->seat =
        seats_take(&worker->server->seats, seats_owner_of_worker(worker->number), client);
    if (worker->seat != SEATS_REFUSED) {
        trace_accepted(worker->server->context.trace, worker->seat, address_port(client));
        return true;
    }
    close(socket);
    errno = EAGAIN;
    return false;
}

void worker_take(struct worker *worker, int seat)
{
    atomic_fetch_add_explicit(&worker->slot->connections, 1, memory_order_relaxed);
    claim(worker);
    worker->seat = seat < worker->server->seats.count ? seat : -1;
}

void worker_lost_seats(struct server *server, int number)
{
    seats_leave_all(&server->seats, seats_owner_of_worker(number));
}

/* Returns true if no client will come any more. At a stop one worker finds this out for all that
 * share its listener. */
static bool is_drained(struct worker *worker, bool stopping)
{
    struct scoreboard *board = worker->server->board;

    if (!stopping || worker->server->options.accept == ACCEPT_REUSEPORT)
        return stopping;
    atomic_store(&board->drained, true);
    return true;
}

/* Returns how long the worker waits for a client, in milliseconds; -1: until one comes or the
 * server stops. A busy worker waits in accept(), which saves a call. One that waited there in vain
 * waits by epoll, so that it does not wake up again and again. */
static int patience(const struct worker *worker, int service_wait)
{
    if (atomic_load(&worker->server->board->no_late_clients))
        return 0;
    return worker->idle && !worker->stops ? service_wait : LISTENER_PATIENCE;
}

/* Waits for a client; -1 with errno, EINTR if the server stops. */
static int await(struct worker *worker, int milliseconds, union address *client)
{
    int socket;

    if (worker->events < 0)
        worker->events = listener_watch(worker->listener, worker->server->stop);
    if (worker->events < 0)
        return -1;
    socket = listener_await(worker->listener, worker->events, milliseconds, client);
    if (socket < 0 && errno == ECANCELED) {
        epoll_ctl(worker->events, EPOLL_CTL_DEL, worker->server->stop, NULL);
        worker->stops = true;
        errno = EINTR;
    }
    return socket;
}

int worker_accept(struct worker *worker)
{
    struct server *server = worker->server;
    struct scoreboard *board = server->board;

    while (acceptor_goes_on(server) && !atomic_load(&board->drained)) {
        /* Those that came before are served. */
        bool stopping = atomic_load(&board->refusing) && !atomic_load(&board->silent_client);
        int wait = services_review(&server->services, clock_now().milliseconds, false);
        union address client;
        int socket = await(worker, patience(worker, wait), &client);

        worker->idle = socket < 0 && errno == EAGAIN;
        if (socket >= 0 && !take_seat(worker, socket, &client))
            continue;
        if (socket >= 0) {
            worker_take(worker, worker->seat);
            scoreboard_note_peak(board, atomic_fetch_add(&board->active, 1) + 1);
            return socket;
        }
        if (errno == EINTR)
            continue;
        if (errno == ESHUTDOWN || acceptor_is_over(server, 0))
            break; /* the listener may be closed */
        if (errno != EAGAIN) {
            acceptor_warn_scarce(server, "cannot accept");
            poll(NULL, 0, ACCEPTOR_SCARCE_MILLISECONDS);
        } else if (is_drained(worker, stopping)) {
            break;
        }
    }
    return -1;
}

static int try_accept(struct worker *worker, union address *client)
{
    trace_note(worker->server->context.trace, TRACE_ACCEPT, 0, 0);
    return listener_accept(worker->listener, client);
}

int worker_try(struct worker *worker)
{
    struct server *server = worker->server;
    struct scoreboard *board = server->board;
    union address client;
    int64_t active;
    int socket = -1;

    claim(worker);
    active = atomic_fetch_add(&board->active, 1) + 1; /* a seat is claimed first */
    if (active > (int64_t)server->limit)
        errno = EBUSY;
    else
        socket = try_accept(worker, &client);
    if (socket >= 0 && take_seat(worker, socket, &client)) {
        scoreboard_note_peak(board, active);
        atomic_fetch_add_explicit(&worker->slot->connections, 1, memory_order_relaxed);
        return socket;
    }
    atomic_fetch_sub(&board->active, 1);
    disclaim(worker);
    if (errno != EAGAIN && errno != EBUSY && errno != ESHUTDOWN && !acceptor_is_over(server, 0))
        acceptor_warn_scarce(server, "cannot accept");
    return -1;
}

bool worker_has_seat(const struct worker *worker)
{
    return !acceptor_is_full(worker->server);
}

int worker_quiet(const struct worker *worker)
{
    return atomic_load(&worker->server->board->no_late_clients) ? 0 : ACCEPTOR_QUIET_MILLISECONDS;
}

bool worker_may_be_late(const struct worker *worker)
{
    return !atomic_load(&worker->server->board->refusing);
}

bool worker_is_relieved(const struct worker *worker)
{
    return atomic_load(&worker->server->board->handed_over);
}

bool worker_is_over(const struct worker *worker)
{
    return acceptor_is_over(worker->server, 0);
}

void worker_left(struct worker *worker)
{
    atomic_store(&worker->slot->assigned, false);
    server_left(worker->server);
    disclaim(worker);
}

void worker_serve(struct worker *worker, int socket)
{
    server_serve_at(worker->server, worker->slot, worker->seat, socket, clock_now());
    trace_note(worker->server->context.trace, TRACE_WAIT, 0, 0);
    worker_left(worker);
}
