/* The life of a server: opening, accepting, serving, closing. */
#include "common/server.h"

#include "common/acceptor.h"
#include "common/base/oom_guard.h"
#include "common/base/proc_status.h"
#include "common/base/service_manager.h"
#include "common/base/uring.h"
#include "common/base/wakeup.h"
#include "common/command_line/command_line.h"
#include "common/connection.h"
#include "common/net/listener_open.h"
#include "common/net/tls.h"
#include "common/sandbox/sandbox.h"
#include "common/signals.h"
#include "common/startup.h"
#include "common/summary.h"
#include "common/trace.h"
#include "common/trace_file.h"
#include "common/upgrade.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Under load, signals and other listeners are checked after so many connections; and after so long,
 * for models that serve a connection before they accept the next. */
#define UNCHECKED_LIMIT    32
#define CHECK_MILLISECONDS 100
#define TIGHT_MILLISECONDS 10000
/* A child has so long to end after it has reported the end of its connection. */
#define CHILD_MILLISECONDS 10000
/* Where others wait for the end of a connection, it is asked to end after this long. With TLS the
 * next begins with a handshake, which takes as much work as a hundred requests. */
#define TURN_MILLISECONDS     10
#define TURN_TLS_MILLISECONDS 200

/* ---- opening ---- */

void server_ready(struct server *server)
{
    char url[80], workers[80] = "";

    listener_url(&server->listener, server->options.tls ? "https" : "http", url, sizeof url);
    if (server->options.workers > 0)
        snprintf(workers, sizeof workers, " (%d, --accept %s)", server->options.workers,
                 model_accept_name((enum accept)server->options.accept));
    printf("%s: %s serves ", server->model->name, url);
    services_print(&server->options);
    printf(", %s%s%s", server->model->summary, workers, server->options.udp ? "; also by UDP" : "");
    if (server->options.ballast > 0)
        printf("; with %" PRIu64 " KiB of ballast", server->options.ballast / 1024);
    if (server->identity.name != NULL)
        printf("; as user %s", server->identity.name);
    putchar('\n');
    fflush(stdout);
    service_manager_tell(server->service_manager, "READY=1");
    signals_ready(server);
}

bool server_open(struct server *server, const struct model *model, int argc, char **argv)
{
    startup_fill_standard_descriptors();
    signal(SIGCHLD, SIG_DFL); /* who started it may ignore it: then nobody can wait for a child */
    *server = (struct server){.model = model, .process = getpid(), .now = clock_now()};
    mallopt(M_ARENA_MAX, 1); /* an arena for each thread costs more than sharing one */
    switch (command_line_read(&server->options, model, argc, argv)) {
    case COMMAND_LINE_BAD:
        server->exit_status = 2;
        return false;
    case COMMAND_LINE_DONE:
        return false;
    case COMMAND_LINE_GOOD:
        break;
    }
    if (!startup_prepare(server, argv)) {
        server->exit_status = 1;
        return false;
    }
    if (server->options.workers == 0 && !server->options.template)
        server_ready(server);
    return true;
}

/* ---- accepting ---- */

/* Memory that many connections have left is not free at once. */
static void note_tight(struct server *server, int64_t active)
{
    if (server->memory.tight_from > 0 && active >= server->memory.tight_from)
        server->memory.tight_until = server->now.milliseconds + TIGHT_MILLISECONDS;
}

/* Where memory is tight, children that have ended are reaped at once: the others need theirs. */
static bool is_time_to_check(struct server *server)
{
    if (!acceptor_memory_is_tight(server) && ++server->accepting.unchecked < UNCHECKED_LIMIT &&
        server->now.milliseconds < server->accepting.checked + CHECK_MILLISECONDS)
        return false;
    server->accepting.unchecked = 0;
    server->accepting.checked = server->now.milliseconds;
    return true;
}

/* Workers count their connections themselves. */
static void count_connection(struct server *server)
{
    struct scoreboard *board = server->board;
    int64_t active = atomic_fetch_add(&board->active, 1) + 1;

    scoreboard_note_peak(board, active);
    memory_return_note(&server->memory.returns, active);
    if (server->options.workers == 0)
        atomic_fetch_add_explicit(&board->slots[0].connections, 1, memory_order_relaxed);
    server->now = clock_now();
    note_tight(server, active);
}

/* Returns true if a process is made for each connection, and shares no memory with others. */
static bool is_for_one(const struct server *server)
{
    return server->model->served_by == BY_CHILD && !server->model->shares;
}

/* Returns true if each connection has a child whose memory is a copy, whatever else they share. */
static bool has_copies(const struct server *server)
{
    return server->model->served_by == BY_CHILD && server->options.share < (int)SHARE_MEMORY;
}

/* A model that makes processes or threads hands the connection over to one of them. */
static void note_accepted(struct server *server, const union address *client)
{
    struct trace *trace = server->context.trace;

    server->number = trace_accepted(trace, server->seat, address_port(client));
    if (server->model->served_by != BY_MAIN)
        trace_note(trace, TRACE_HAND_OVER, server->number, 0);
    if (trace != NULL && has_copies(server) && !server->options.template)
        trace_expect_child(trace);
}

int server_accept(struct server *server)
{
    while (acceptor_goes_on(server)) {
        union address client;
        int socket;
        bool ended;

        if (is_time_to_check(server))
            acceptor_check(server);
        if (acceptor_is_full(server)) {
            acceptor_wait_for_seat(server);
            continue;
        }
        trace_note(server->context.trace, TRACE_ACCEPT, 0, 0);
        socket = acceptor_take(server, &client);
        if (socket >= 0) {
            server->seat = seats_take(&server->seats, SEATS_OWNER_UNKNOWN, &client);
            if (server->seat == SEATS_REFUSED) {
                close(socket);
                continue;
            }
            note_accepted(server, &client);
            seats_note(&server->seats, socket, server->seat);
            count_connection(server);
            return socket;
        }
        ended = errno == ESHUTDOWN && server_stops(server); /* by another server at this port */
        if (errno != EAGAIN && !ended) {
            acceptor_warn_scarce(server, "cannot accept");
            acceptor_wait_for_resources(server);
        } else if (ended || !acceptor_wait_for_client(server)) {
            break;
        }
    }
    return -1;
}

bool server_hold(struct server *server, int socket, const char *what)
{
    acceptor_warn_scarce(server, what);
    acceptor_wait_for_resources(server);
    if (!acceptor_is_over(server, 0))
        return true;
    server_drop(server, socket);
    return false;
}

/* A child process has the seat that was taken last: its server accepts nothing more. */
static int seat_of(const struct server *server, int socket)
{
    return model_makes_processes(server->model) ? server->seat : seats_find(&server->seats, socket);
}

void server_drop(struct server *server, int socket)
{
    seats_leave(&server->seats, seat_of(server, socket));
    close(socket);
    server_left(server);
}

void server_made(struct server *server)
{
    atomic_fetch_add_explicit(&server->board->made, 1, memory_order_relaxed);
}

void server_made_child(struct server *server, pid_t child)
{
    if (acceptor_memory_is_tight(server) && server->options.share < (int)SHARE_MEMORY)
        oom_guard_ask(server->memory.oom_guard, child);
    seats_assign(&server->seats, server->seat, child);
    if (server->context.trace != NULL)
        trace_made_child(server->context.trace, child);
    server_made(server);
}

bool server_lost_child(struct server *server, pid_t child)
{
    int seat = seats_find_owner(&server->seats, child);

    trace_died(server->context.trace, child);
    if (seat < 0)
        return false;
    seats_leave(&server->seats, seat);
    server_left(server);
    return true;
}

bool server_has_clients(const struct server *server)
{
    return atomic_load(&server->board->active) > 0;
}

/* Returns true, for the trace, in a process or thread that serves one connection and ends. */
static bool is_made_for_connection(const struct server *server)
{
    return server->context.trace != NULL && server->options.workers == 0 &&
           trace_is_elsewhere(server->context.trace);
}

/* Once the last connection has been counted off, the main thread may end, and the server with it:
 * nothing of it is read after that. */
void server_left(struct server *server)
{
    struct scoreboard *board = server->board;
    int wakeup = server->wakeup;

    if (is_made_for_connection(server))
        trace_note(server->context.trace, TRACE_END, 0, 0);
    atomic_fetch_sub(&board->active, 1);
    if (atomic_load(&board->acceptor_waits))
        wakeup_ring(wakeup);
}

/* ---- serving ---- */

void server_thread(const struct server *server)
{
    if (is_made_for_connection(server))
        trace_note(server->context.trace, TRACE_START, 0, 0);
}

/* A worker makes its ring before it loses the right to. Only a plain stream at whose
 * socket nobody else waits is received and sent by the ring. */
static void open_ring(struct server *server)
{
    const struct service_context *context = &server->context;

    server->ring = malloc(sizeof *server->ring);
    if (server->ring != NULL &&
        uring_open(server->ring, context->tls == NULL && !context->service->watches_client))
        return;
    warn("cannot make a ring%s", errno == ENOMEM ? " within the limit of locked memory" : "");
    free(server->ring);
    server->ring = NULL;
}

/* Returns true if the open files of a child are its own, and it serves one connection: it has no
 * use for the listeners, and could end them, or take the clients of others. */
static bool drops_listeners(const struct server *server)
{
    int share = server->model->shares ? server->options.share : (int)SHARE_NOTHING;

    return server->model->served_by == BY_CHILD &&
           (share == (int)SHARE_NOTHING || share == (int)SHARE_FS || share == (int)SHARE_MEMORY);
}

/* If the server has died before the child was tied to it, the child serves its connection. */
void server_child(struct server *server)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (drops_listeners(server)) {
        listener_drop_streams(&server->listener);
        close(server->upgrade.helper); /* through it a child could end that process */
    }
    if (server->context.trace != NULL)
        trace_begin_child(server->context.trace);
    server_thread(server);
    if (server->model->served_by == BY_WORKER_PROCESS) {
        upgrade_leave(server);
        services_watch(&server->services);
        if (server->model->rings)
            open_ring(server);
        sandbox_enter_worker(&server->sandbox);
    } else {
        sandbox_enter_child(&server->sandbox);
    }
}

void server_child_ends(struct server *server)
{
    services_end_child(&server->services);
    if (server->ring != NULL)
        uring_close(server->ring);
    free(server->ring);
    free(server->twins);
}

/* Sleeps until the connection can go on, a signal arrives, its seat is needed, or the time is
 * over.
 */
static void sleep_for(struct server *server, const struct connection *connection, enum need need,
                      bool accepts, int milliseconds)
{
    bool stopping = server_stops(server);
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    struct pollfd waits[] = {
        {.fd = connection->descriptor, .events = need == NEED_READ ? POLLIN : POLLOUT},
        {.fd = accepts ? server->signals : -1, .events = POLLIN},
        {.fd = stopping ? -1 : server->stop, .events = POLLIN},
    };

    if (ppoll(waits, 3, &time, &server->waking) <= 0 || waits[1].revents == 0)
        return;
    signals_handle(server);
    if (server_stops(server))
        acceptor_gather(server);
}

static bool give_way(struct server *server, struct connection *connection)
{
    if (!connection_give_way(connection))
        return false;
    atomic_fetch_add(&server->board->gave_way, 1);
    return true;
}

struct listener *server_listener(struct server *server, int worker)
{
    bool own = server->options.accept == ACCEPT_REUSEPORT && worker > 0;

    return own ? &server->twins[worker - 1] : &server->listener;
}

/* Returns true if clients wait for the end of a connection of this worker. With --accept queue,
 * they have been accepted. */
static bool others_wait(struct server *server, const struct scoreboard_slot *slot)
{
    int workers = server->options.workers;

    return (workers > 0 && atomic_load(&server->board->active) > workers) ||
           !listener_is_empty(server_listener(server, (int)(slot - server->board->slots)));
}

/* A client that sends one request after another does not keep its worker from all others. */
static void check_turn_of_worker(struct server *server, const struct scoreboard_slot *slot,
                                 struct connection *connection, int64_t *turn)
{
    int length = server->options.tls ? TURN_TLS_MILLISECONDS : TURN_MILLISECONDS;

    if (connection->now.milliseconds - *turn < length)
        return;
    *turn = connection->now.milliseconds;
    connection_yield(connection, others_wait(server, slot));
}

/* Limits the turn of a connection while clients wait for a seat. */
static void check_turn(struct server *server, const struct scoreboard_slot *slot,
                       struct connection *connection, int64_t *turn)
{
    if (!model_makes_for_each(server->model))
        check_turn_of_worker(server, slot, connection, turn);
    else
        connection_yield(connection,
                         atomic_load(&server->board->acceptor_waits) &&
                             connection->now.milliseconds - *turn >= CONNECTION_TURN_MILLISECONDS);
}

/* Waits for what a connection needs; false if its time is over. A patient transport waits in its
 * next read itself, for a moment, which saves a system call: the deadline is checked here. The
 * thread that accepts must handle signals while it serves. */
static bool await(struct server *server, struct scoreboard_slot *slot, int seat,
                  struct connection *connection, enum need need)
{
    bool asked = false;
    int64_t end = server_deadline(server);
    int64_t deadline = end != 0 && end < connection->deadline ? end : connection->deadline;
    bool accepts = server->model->served_by == BY_MAIN;
    /* A client that trickles would never be asked to give its seat up, if a read waited for it. */
    bool wanted =
        model_makes_for_each(server->model) && atomic_load(&server->board->acceptor_waits);

    scoreboard_add(slot, &connection->tally);
    if (connection->idle && is_for_one(server))
        services_stay(&server->services);
    if (need == NEED_READ && connection->descriptor == connection->transport.socket &&
        !connection->transport.timed_out && end == 0 && !accepts && !wanted) {
        connection->transport.patient = true;
    } else {
        trace_note(server->context.trace, TRACE_WAIT, connection->number, 0);
        if (model_makes_for_each(server->model))
            seats_wait(&server->seats, seat, connection_standing(connection, need));
        sleep_for(server, connection, need, accepts,
                  clock_until(deadline, connection->now.milliseconds));
        asked = seats_resume(&server->seats, seat);
    }
    connection->now = clock_now();
    return (asked && give_way(server, connection)) || connection->now.milliseconds < deadline;
}

void server_serve_at(struct server *server, struct scoreboard_slot *slot, int seat, int socket,
                     struct moment now)
{
    struct connection connection;
    struct exchange exchange;
    enum need need;
    int64_t turn = now.milliseconds;
    uint32_t number =
        has_copies(server) ? server->number : trace_number(server->context.trace, seat);

    trace_note(server->context.trace, TRACE_BEGIN, number, 0);
    connection_open(&connection, &server->context, socket, now);
    connection.number = number;
    connection_lend(&connection, &exchange);
    connection.transport.patient = true;
    while ((need = connection_step(&connection)) != NEED_NOTHING) {
        if (!await(server, slot, seat, &connection, need))
            connection_expire(&connection);
        check_turn(server, slot, &connection, &turn);
    }
    connection_close(&connection);
    scoreboard_add(slot, &connection.tally);
    seats_leave(&server->seats, seat); /* before server_left(): whoever is counted has a seat */
}

/* A new child knows the time without a system call: its copy of `now` is when its connection was
 * accepted. A thread must not read `now`, which the next connection may be changing. */
void server_serve(struct server *server, int socket)
{
    if (!model_makes_processes(server->model))
        server_thread(server);
    server_serve_at(server, &server->board->slots[0], seat_of(server, socket), socket,
                    model_lasts(server->model) ? clock_now() : server->now);
}

/* ---- workers ---- */

static bool are_empty(const struct server *server)
{
    bool empty = listener_is_empty(&server->listener);

    for (int i = 0; i < server->twin_count; i++)
        empty = listener_is_empty(&server->twins[i]) && empty;
    return empty;
}

static void shut_down(const struct server *server)
{
    listener_shut_down(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_shut_down(&server->twins[i]);
}

/* Waits until the workers have accepted the last clients, and frees the port: a slow response does
 * not hold it. Descriptors stay open, since workers may be at them. */
static void free_port(struct server *server)
{
    int64_t quiet_from = clock_now().milliseconds;

    if (server->listener.adopted)
        return;
    while (atomic_load(&server->board->workers) > 0 && !acceptor_is_over(server, 0)) {
        int64_t now = clock_now().milliseconds;
        if (acceptor_has_silent_client(server) || !are_empty(server))
            quiet_from = now;
        else if (now - quiet_from >= server->accepting.quiet)
            break;
        acceptor_wait_for_resources(server);
    }
    shut_down(server);
}

void server_watch(struct server *server)
{
    while (!server_stops(server))
        acceptor_sleep(server, signals_collect(server));
    acceptor_refuse(server);
    free_port(server);
    while (atomic_load(&server->board->workers) > 0 &&
           !acceptor_is_over(server, SIGNALS_GRACE_MARGIN))
        acceptor_wait_for_resources(server);
}

void server_worker_began(struct server *server)
{
    atomic_fetch_add(&server->board->workers, 1);
    server_made(server);
}

void server_worker_ended(struct server *server)
{
    struct scoreboard *board = server->board;
    int wakeup = server->wakeup;

    atomic_fetch_sub(&board->workers, 1);
    wakeup_ring(wakeup);
}

bool server_assign(struct server *server, int number)
{
    struct scoreboard_slot *slot = &server->board->slots[number];

    if (atomic_exchange(&slot->assigned, true))
        return false;
    atomic_store(&slot->seat, server->seat);
    seats_assign(&server->seats, server->seat, seats_owner_of_worker(number));
    return true;
}

void server_unassign(struct server *server, int number)
{
    atomic_store(&server->board->slots[number].assigned, false);
}

/* ---- closing ---- */

/* Worker threads that still run may use the listeners: then these close when the process ends.
 * Sockets that datagrams are answered from stay open. */
static void stop_listening(struct server *server)
{
    if (startup_workers_accept(server) && server->model->served_by == BY_WORKER_THREAD &&
        atomic_load(&server->board->workers) > 0)
        return;
    listener_close_streams(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_close_streams(&server->twins[i]);
}

static void close_listeners(struct server *server)
{
    listener_close(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_close(&server->twins[i]);
    free(server->twins);
    free(server->accepting.gathered.sockets);
}

/* A thread that has reported its end still uses memory of this process until it is gone. To join
 * each thread would cost something for every connection; this costs nothing until the end. */
static void await_threads(struct server *server)
{
    while (proc_status_number(server->memory.status, "Threads:") > server->threads &&
           !acceptor_is_over(server, SIGNALS_GRACE_MARGIN))
        acceptor_sleep(server, 1);
}

/* Waits until all connections and workers have ended, or the time is over; returns true if they
 * have. */
static bool await_all(struct server *server)
{
    struct scoreboard *board = server->board;

    while ((atomic_load(&board->active) > 0 || atomic_load(&board->workers) > 0) &&
           !acceptor_is_over(server, SIGNALS_GRACE_MARGIN))
        acceptor_wait_for_resources(server);
    return atomic_load(&board->active) <= 0 && atomic_load(&board->workers) <= 0;
}

static void close_all(struct server *server)
{
    close_listeners(server);
    services_close(&server->services);
    seats_close(&server->seats);
    if (server->context.tls != NULL)
        tls_close(server->context.tls);
    if (server->context.log != NULL)
        access_log_close(server->context.log);
    upgrade_close(server);
    oom_guard_close(server->memory.oom_guard);
}

/* A child ends soon after it has reported the end of its connection. The kernel kills one that does
 * not when this process ends. */
static void await_children(struct server *server)
{
    int64_t end = clock_now().milliseconds + CHILD_MILLISECONDS;

    while (server->model->children->collect(server, true) >= 0 && clock_now().milliseconds < end &&
           !acceptor_is_over(server, SIGNALS_GRACE_MARGIN))
        poll(NULL, 0, 1); /* signals have nothing to act on any more */
}

/* Children are collected after all helper processes have lost their sockets and end: if this
 * process is the first one of a container, it is their parent. */
int server_close(struct server *server)
{
    const struct model_children *children = server->model->children;
    bool all, written;

    stop_listening(server);
    all = await_all(server);
    if (all)
        await_threads(server);
    if (all || server->model->served_by == BY_WORKER_PROCESS) /* they have memory of their own */
        close_all(server);
    if (children != NULL)
        await_children(server);
    signals_stopped(server);
    trace_file_end(server);
    summary_print(server);
    written = summary_write(server, server->stats);
    written &= trace_file_write(server);
    if (children != NULL && children->free != NULL)
        children->free(server);
    return written ? 0 : 1;
}
