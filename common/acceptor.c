/* Waits, in the accepting process, for clients, seats, resources and signals. */
#include "common/acceptor.h"

#include "common/base/wakeup.h"
#include "common/net/silent_clients.h"
#include "common/signals.h"
#include "common/trace.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A child that dies without reporting the end of its connection is noticed within this time. */
#define SEAT_MILLISECONDS 100
/* The shortest time between two searches through all connections. */
#define ASK_MILLISECONDS 10

/* Events are numbered: the listener's sockets come first. */
enum { EVENT_SIGNAL = LISTENER_SOCKETS, EVENT_WAKEUP };

static bool add(int events, int file, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    return epoll_ctl(events, EPOLL_CTL_ADD, file, &event) == 0;
}

bool acceptor_open(struct server *server)
{
    bool good;

    server->accepting.events = epoll_create1(EPOLL_CLOEXEC);
    good = server->accepting.events >= 0 &&
           add(server->accepting.events, server->signals, EVENT_SIGNAL) &&
           add(server->accepting.events, server->wakeup, EVENT_WAKEUP);
    for (int i = 0; good && i < server->listener.count; i++)
        good = add(server->accepting.events, server->listener.sockets[i], (uint32_t)i);
    return good;
}

void acceptor_warn_scarce(struct server *server, const char *what)
{
    struct scoreboard *board = server->board;
    int error = errno;
    int64_t second = clock_now().seconds;

    if (atomic_exchange(&board->scarce_seconds, second) != second)
        atomic_store(&board->scarce_warnings, 0);
    errno = error;
    if (atomic_fetch_add(&board->scarce_warnings, 1) >= 2)
        return;
    warn("%s: connections wait", what);
    errno = error; /* callers ask which one it was */
}

void acceptor_sleep(struct server *server, int milliseconds)
{
    struct pollfd waits[] = {
        {.fd = server->signals, .events = POLLIN},
        {.fd = server->wakeup, .events = POLLIN},
    };

    trace_note(server->context.trace, TRACE_WAIT, 0, 0);
    if (poll(waits, 2, milliseconds) <= 0)
        return;
    if (waits[0].revents != 0)
        signals_handle(server);
    if (waits[1].revents != 0)
        wakeup_clear(server->wakeup);
}

/* As acceptor_sleep(), but a client ends the sleep, too: the next accept takes from the socket that
 * it came to. Returns true if one came. */
static bool sleep_for_client(struct server *server, int milliseconds)
{
    struct epoll_event events[4];
    bool came = false;
    int count;

    if (milliseconds != 0)
        trace_note(server->context.trace, TRACE_WAIT, 0, 0);
    count = epoll_wait(server->accepting.events, events, 4, milliseconds);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 < LISTENER_SOCKETS) {
            server->listener.next = (int)events[i].data.u32;
            came = true;
        } else if (events[i].data.u32 == EVENT_SIGNAL) {
            signals_handle(server);
        } else {
            wakeup_clear(server->wakeup);
        }
    }
    return came;
}

void acceptor_check(struct server *server)
{
    sleep_for_client(server, 0);
    signals_collect(server);
}

/* Asks as many connections to end as clients wait, and waits until one has ended. Without clients
 * it sleeps until one comes. */
static bool make_way(struct server *server)
{
    int most = seats_at_once((int64_t)server->limit), waiting;
    int64_t now = clock_now().milliseconds;

    if (!model_makes_for_each(server->model) || server_stops(server))
        return false;
    waiting = listener_waiting(&server->listener);
    if (waiting > 0 && now >= server->accepting.asked + ASK_MILLISECONDS) {
        server->accepting.asked = now;
        seats_ask(&server->seats, waiting < most ? waiting : most, now);
    }
    if (waiting > 0)
        acceptor_sleep(server, SEATS_LOOK_MILLISECONDS);
    else
        sleep_for_client(server, SEAT_MILLISECONDS);
    return true;
}

void acceptor_wait_for_seat(struct server *server)
{
    server->now = clock_now(); /* memory becomes free with time, while nobody is accepted */
    atomic_store(&server->board->acceptor_waits, true);
    signals_collect(server);
    if (acceptor_is_full(server) && !make_way(server))
        acceptor_sleep(server, SEAT_MILLISECONDS);
    atomic_store(&server->board->acceptor_waits, false);
}

void acceptor_wait_for_resources(struct server *server)
{
    atomic_store(&server->board->acceptor_waits, true);
    acceptor_sleep(server, ACCEPTOR_SCARCE_MILLISECONDS);
    atomic_store(&server->board->acceptor_waits, false);
    signals_collect(server);
}

/* Refuses new clients at all listeners, in one way. */
static bool refuse(struct server *server, bool (*way)(struct listener *))
{
    bool refused = way(&server->listener);

    for (int i = 0; i < server->twin_count; i++)
        refused = way(&server->twins[i]) && refused;
    return refused;
}

static bool refuse_by_hop_limit(struct server *server)
{
    atomic_store(&server->board->hop_limited, true);
    return refuse(server, listener_refuse_by_hop_limit);
}

/* New clients are refused by now. So once no silent client is left, none will come, and the kernel
 * is not asked again. */
bool acceptor_has_silent_client(struct server *server)
{
    bool has = clock_now().milliseconds < server->accepting.silent_until &&
               listener_handover_finds_silent(server->upgrade.helper);

    if (!has)
        server->accepting.silent_until = 0;
    atomic_store(&server->board->silent_client, has);
    return has;
}

/* If the kernel cannot refuse new clients, there is no last one to wait for. */
void acceptor_refuse(struct server *server)
{
    /* Some kernels allow the filter to root alone. */
    bool refused =
        refuse(server, listener_refuse) ||
        (!server->listener.adopted && listener_handover_refuse(server->upgrade.helper)) ||
        refuse_by_hop_limit(server);

    if (refused && server->model->defers)
        server->accepting.silent_until = clock_now().milliseconds + SILENT_CLIENTS_MILLISECONDS;
    acceptor_has_silent_client(server);
    server->accepting.refusing = true;
    server->accepting.quiet = refused ? ACCEPTOR_QUIET_MILLISECONDS : 0;
    atomic_store(&server->board->no_late_clients, !refused);
    atomic_store(&server->board->refusing, true);
}

void acceptor_welcome(const struct server *server, int socket, const union address *client)
{
    if (atomic_load(&server->board->hop_limited))
        listener_receive_from(socket, client);
}

static bool keep(struct gathered *gathered, int socket)
{
    size_t count = (size_t)gathered->count + 1;
    int *grown = realloc(gathered->sockets, count * sizeof *grown);

    if (grown == NULL)
        return false;
    gathered->sockets = grown;
    grown[gathered->count++] = socket;
    return true;
}

/* Returns false if there is no resource for another one. */
static bool accept_next(struct server *server)
{
    union address client;
    int socket = listener_accept(&server->listener, &client);

    if (socket < 0)
        return errno == EAGAIN;
    acceptor_welcome(server, socket, &client);
    if (keep(&server->accepting.gathered, socket))
        return true;
    close(socket);
    return false;
}

/* Clients for whom there is no resource wait at the port until they are served. */
void acceptor_gather(struct server *server)
{
    int64_t now = clock_now().milliseconds, end;
    bool silent, came;

    if (server->listener.adopted || server->accepting.refusing)
        return;
    acceptor_refuse(server);
    end = now + server->accepting.quiet;
    do {
        silent = acceptor_has_silent_client(server);
        sleep_for_client(server, clock_until(end, now));
        came = !listener_is_empty(&server->listener);
        if (came && !accept_next(server))
            return;
        now = clock_now().milliseconds;
        if (came || silent)
            end = now + server->accepting.quiet;
    } while (came || now < end);
    listener_shut_down(&server->listener);
    server->accepting.gathered.closed = true;
}

int acceptor_take(struct server *server, union address *client)
{
    struct gathered *gathered = &server->accepting.gathered;
    int socket;

    client->any.sa_family = AF_UNSPEC;
    if (gathered->next < gathered->count)
        return gathered->sockets[gathered->next++];
    socket = listener_accept(&server->listener, client);
    if (socket >= 0)
        acceptor_welcome(server, socket, client);
    return socket;
}

/* Returns after how many milliseconds it must be called again; -1: there is no need to. */
static int maintain(struct server *server)
{
    int64_t now = clock_now().milliseconds, active = atomic_load(&server->board->active);
    bool others = server->memory.returns.threads && active > 0;
    int wait =
        clock_shorter(signals_collect(server), services_review(&server->services, now, others));

    if (!server->memory.returns.threads)
        return wait;
    return clock_shorter(wait, memory_return_review(&server->memory.returns, active, now));
}

bool acceptor_wait_for_client(struct server *server)
{
    int left;

    if (!server_stops(server)) {
        sleep_for_client(server, maintain(server));
        return true;
    }
    if (!server->accepting.refusing) {
        acceptor_refuse(server);
        server->now = clock_now();
    }
    left =
        clock_until(server->now.milliseconds + server->accepting.quiet, clock_now().milliseconds);
    if (left == 0 && acceptor_has_silent_client(server))
        left = server->accepting.quiet;
    return sleep_for_client(server, left) || left > 0;
}
