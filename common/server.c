#include "common/server.h"

#include "common/command_line.h"
#include "common/connection.h"
#include "common/files/file_cache.h"
#include "common/net/tls.h"
#include "common/startup.h"
#include "common/summary.h"
#include "common/workers/process_crew.h"

#include <err.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define GRACE_MILLISECONDS 5000
/* Connections end themselves at the end of the grace time; this much later nobody waits for them
 * any more. */
#define GRACE_MARGIN 250
/* The end of a connection whose process died without a word is noticed after this long. */
#define PLACE_MILLISECONDS 100
/* Under load, signals and the other listeners are looked at once in so many connections. */
#define UNSEEN_LIMIT 32
/* and after this long, where a model serves between two of them. */
#define LOOK_MILLISECONDS 100

/* ---- opening ---- */

void server_ready(const struct server *server)
{
    char url[80], crew[80] = "";

    listener_url(&server->listener, server->options.tls ? "https" : "http", url, sizeof url);
    if (server->options.workers > 0)
        snprintf(crew, sizeof crew, " (%d, --accept %s)", server->options.workers,
                 model_accept_name(server->options.accept));
    printf("%s: %s serves ", server->model->name, url);
    services_print(&server->options);
    printf(", %s%s%s\n", server->model->summary, crew, server->options.udp ? "; also by UDP" : "");
    fflush(stdout);
}

/* What the events of the acceptor are told apart by, beside the listeners' numbers. */
enum { EVENT_SIGNAL = LISTENER_SOCKETS, EVENT_LEFT };

static bool watch(int events, int file, uint32_t name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = name};

    return epoll_ctl(events, EPOLL_CTL_ADD, file, &event) == 0;
}

static bool watch_all(struct server *server)
{
    bool good;

    server->events = epoll_create1(EPOLL_CLOEXEC);
    good = server->events >= 0 && watch(server->events, server->signals, EVENT_SIGNAL) &&
           watch(server->events, server->left, EVENT_LEFT);
    for (int i = 0; good && i < server->listener.count; i++)
        good = watch(server->events, server->listener.sockets[i], (uint32_t)i);
    if (!good)
        warn("cannot make ready");
    return good;
}

bool server_open(struct server *server, const struct model *model, int argc, char **argv)
{
    startup_fill_standard_descriptors();
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
    if (!startup_make_ready(server) || !watch_all(server)) {
        server->exit_status = 1;
        return false;
    }
    if (server->options.workers == 0)
        server_ready(server);
    return true;
}

/* ---- signals ---- */

static void ring(int event)
{
    uint64_t one = 1;

    if (write(event, &one, sizeof one) < 0)
        return; /* it is readable already */
}

static void hush(int event)
{
    uint64_t count;

    if (read(event, &count, sizeof count) < 0)
        return; /* nobody rang */
}

/* The first signal begins the grace time, the second one ends it. */
static void ask_to_stop(struct server *server)
{
    struct scoreboard *board = server->board;
    int64_t now = clock_now().milliseconds, none = 0;

    if (!atomic_compare_exchange_strong(&board->stop_deadline, &none, now + GRACE_MILLISECONDS))
        atomic_store(&board->stop_deadline, now - GRACE_MARGIN);
    ring(server->stop);
    ring(server->left);
}

/* Children that have ended are collected all together: when there is nothing better to do, or many.
 * Where each serves one connection alone, no signal tells of them: to be woken for each would cost
 * more than a look now and then. Returns how long the acceptor may sleep. */
static int collect(struct server *server)
{
    return server->model->collect != NULL ? server->model->collect(server, false) : -1;
}

static void heed_signals(struct server *server)
{
    struct signalfd_siginfo signal;

    while (read(server->signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
        if (signal.ssi_signo == SIGINT || signal.ssi_signo == SIGTERM)
            ask_to_stop(server);
        else if (signal.ssi_signo == SIGUSR1)
            summary_write(server, server->stats);
        else if (signal.ssi_signo == SIGCHLD)
            collect(server);
        else if (signal.ssi_signo == SIGHUP)
            tls_renew(server->context.tls);
    }
}

static int until(int64_t deadline, int64_t now)
{
    return deadline > now ? (int)(deadline - now) : 0;
}

/* ---- accepting ---- */

void server_warn_scarce(struct server *server, const char *what)
{
    struct scoreboard *board = server->board;
    int error = errno;
    int64_t second = clock_now().seconds;

    if (atomic_exchange(&board->scarce_seconds, second) != second)
        atomic_store(&board->scarce_warnings, 0);
    if (atomic_fetch_add(&board->scarce_warnings, 1) >= 2)
        return;
    errno = error;
    warn("%s: connections wait", what);
}

/* Sleeps until a connection ends, a signal arrives, or the time is over. */
static void rest(struct server *server, int milliseconds)
{
    struct pollfd waits[] = {
        {.fd = server->signals, .events = POLLIN},
        {.fd = server->left, .events = POLLIN},
    };

    if (poll(waits, 2, milliseconds) <= 0)
        return;
    if (waits[0].revents != 0)
        heed_signals(server);
    if (waits[1].revents != 0)
        hush(server->left);
}

/* As rest(), or until a client comes: then it is the turn of the listener that it came to. Returns
 * whether one did. */
static bool rest_for_client(struct server *server, int milliseconds)
{
    struct epoll_event events[4];
    int count = epoll_wait(server->events, events, 4, milliseconds);
    bool came = false;

    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 < LISTENER_SOCKETS) {
            server->listener.turn = (int)events[i].data.u32;
            came = true;
        } else if (events[i].data.u32 == EVENT_SIGNAL) {
            heed_signals(server);
        } else {
            hush(server->left);
        }
    }
    return came;
}

bool server_is_full(const struct server *server)
{
    return atomic_load(&server->board->active) >= (int64_t)server->limit;
}

/* Waits for a connection to end. */
static void wait_for_place(struct server *server)
{
    atomic_store(&server->board->acceptor_waits, true);
    collect(server);
    if (server_is_full(server))
        rest(server, PLACE_MILLISECONDS);
    atomic_store(&server->board->acceptor_waits, false);
}

/* Something is short. The next try comes soon, or when a connection ends. */
static void wait_for_means(struct server *server)
{
    atomic_store(&server->board->acceptor_waits, true);
    rest(server, SERVER_SCARCE_MILLISECONDS);
    atomic_store(&server->board->acceptor_waits, false);
    collect(server);
}

/* Lets no new client come. Where they cannot be held back, there is no use in waiting for the last
 * of them. */
static void refuse(struct server *server)
{
    bool held = listener_refuse(&server->listener);

    for (int i = 0; i < server->twin_count; i++)
        held = listener_refuse(&server->twins[i]) && held;
    server->refusing = true;
    server->quiet = held ? SERVER_QUIET_MILLISECONDS : 0;
    atomic_store(&server->board->hurry, !held);
}

/* No client waits at the listener whose turn it is. Returns whether one may still come. */
static bool wait_for_client(struct server *server)
{
    int left;

    if (!scoreboard_stopping(server->board)) {
        rest_for_client(server, collect(server));
        return true;
    }
    if (!server->refusing) {
        refuse(server);
        server->now = clock_now();
    }
    left = until(server->now.milliseconds + server->quiet, clock_now().milliseconds);
    return rest_for_client(server, left) || left > 0;
}

bool server_is_over(const struct server *server, int64_t margin)
{
    int64_t deadline = atomic_load(&server->board->stop_deadline);

    return deadline != 0 && clock_now().milliseconds >= deadline + margin;
}

static void count_connection(struct server *server)
{
    struct scoreboard *board = server->board;

    scoreboard_note_peak(board, atomic_fetch_add(&board->active, 1) + 1);
    if (server->options.workers == 0) /* otherwise the worker does */
        atomic_fetch_add_explicit(&board->posts[0].connections, 1, memory_order_relaxed);
    server->now = clock_now();
}

static bool is_time_to_look(struct server *server)
{
    if (++server->unseen < UNSEEN_LIMIT &&
        server->now.milliseconds < server->looked + LOOK_MILLISECONDS)
        return false;
    server->unseen = 0;
    server->looked = server->now.milliseconds;
    return true;
}

int server_accept(struct server *server)
{
    while (!server_is_over(server, 0)) {
        int socket;

        if (is_time_to_look(server)) {
            rest_for_client(server, 0);
            collect(server);
        }
        if (server_is_full(server)) {
            wait_for_place(server);
            continue;
        }
        socket = listener_accept(&server->listener);
        if (socket >= 0) {
            count_connection(server);
            return socket;
        }
        if (errno != EAGAIN) {
            server_warn_scarce(server, "cannot accept");
            wait_for_means(server);
        } else if (!wait_for_client(server)) {
            break;
        }
    }
    return -1;
}

bool server_hold(struct server *server, int socket, const char *what)
{
    server_warn_scarce(server, what);
    wait_for_means(server);
    if (!server_is_over(server, 0))
        return true;
    server_drop(server, socket);
    return false;
}

void server_drop(struct server *server, int socket)
{
    close(socket);
    server_left(server);
}

void server_made(struct server *server)
{
    atomic_fetch_add_explicit(&server->board->made, 1, memory_order_relaxed);
}

/* Once the last connection has left, the server may be gone: it is not looked at after that. */
void server_left(struct server *server)
{
    struct scoreboard *board = server->board;
    int left = server->left;

    atomic_fetch_sub(&board->active, 1);
    if (atomic_load(&board->acceptor_waits))
        ring(left);
}

/* ---- serving ---- */

void server_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void server_child_ends(struct server *server)
{
    services_end_child(&server->services);
    free(server->twins);
}

/* Sleeps until the connection can go on, a signal arrives, or the time is over. */
static void sleep_for(struct server *server, const struct connection *connection, enum need need,
                      bool accepts, int milliseconds)
{
    bool stopping = scoreboard_stopping(server->board);
    struct pollfd waits[] = {
        {.fd = connection->descriptor, .events = need == NEED_READ ? POLLIN : POLLOUT},
        {.fd = accepts ? server->signals : -1, .events = POLLIN},
        {.fd = stopping ? -1 : server->stop, .events = POLLIN},
    };

    poll(waits, 3, milliseconds);
    if (waits[1].revents != 0)
        heed_signals(server);
}

/* Waits for what a connection needs; false if its time is over. The next read may do the waiting
 * itself, for a moment: in the end it is this that looks at the clock. */
static bool await(struct server *server, struct post *post, struct connection *connection,
                  enum need need)
{
    int64_t end = atomic_load(&server->board->stop_deadline);
    int64_t deadline = end != 0 && end < connection->deadline ? end : connection->deadline;
    bool accepts = gettid() == server->process; /* who accepts must heed signals, too */

    scoreboard_add(post, &connection->tally);
    if (need == NEED_READ && connection->descriptor == connection->transport.socket &&
        !connection->transport.timed_out && end == 0 && !accepts)
        connection->transport.patient = true;
    else
        sleep_for(server, connection, need, accepts, until(deadline, connection->now.milliseconds));
    connection->now = clock_now();
    return connection->now.milliseconds < deadline;
}

void server_serve_at(struct server *server, struct post *post, int socket, struct moment now)
{
    struct connection connection;
    struct exchange exchange;
    enum need need;

    connection_open(&connection, &server->context, socket, now);
    connection_lend(&connection, &exchange);
    connection.transport.patient = true;
    while ((need = connection_step(&connection)) != NEED_NOTHING)
        if (!await(server, post, &connection, need))
            connection_expire(&connection);
    connection_close(&connection);
    scoreboard_add(post, &connection.tally);
}

/* A child knows when it was made without asking the clock; a thread must not look, since by now
 * another connection may be accepted. */
void server_serve(struct server *server, int socket)
{
    server_serve_at(server, &server->board->posts[0], socket,
                    server->model->lasting ? clock_now() : server->now);
}

/* ---- a crew ---- */

void server_watch(struct server *server)
{
    while (!scoreboard_stopping(server->board))
        rest(server, collect(server));
    refuse(server);
    while (atomic_load(&server->board->workers) > 0 && !server_is_over(server, GRACE_MARGIN))
        wait_for_means(server);
}

void server_worker_began(struct server *server)
{
    atomic_fetch_add(&server->board->workers, 1);
    server_made(server);
}

void server_worker_ended(struct server *server)
{
    struct scoreboard *board = server->board;
    int left = server->left;

    atomic_fetch_sub(&board->workers, 1);
    ring(left);
}

bool server_assign(struct server *server, int number)
{
    return !atomic_exchange(&server->board->posts[number].given, true);
}

/* ---- closing ---- */

/* Threads that are left when the time is over may still be at the listeners: then the end of the
 * process closes these. Datagrams that are worked on still need theirs. */
static void leave_listeners(struct server *server)
{
    if (startup_workers_wait(server) && !server->model->supervises &&
        atomic_load(&server->board->workers) > 0)
        return;
    listener_leave(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_leave(&server->twins[i]);
}

static void close_listeners(struct server *server)
{
    listener_close(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_close(&server->twins[i]);
    free(server->twins);
}

long server_number(const struct server *server, const char *name)
{
    char status[4096];
    ssize_t length = pread(server->status, status, sizeof status - 1, 0);
    const char *line;

    status[length > 0 ? length : 0] = '\0';
    line = strstr(status, name);
    return line != NULL ? strtol(line + strlen(name), NULL, 10) : -1;
}

/* A thread that has said that it is done is still about to end, and does so in memory of this
 * process: nobody takes that away before. To join each of them would cost every connection
 * something, and this costs nothing until now. */
static void await_threads(struct server *server)
{
    while (server_number(server, "Threads:") > server->threads &&
           !server_is_over(server, GRACE_MARGIN))
        rest(server, 1);
}

int server_close(struct server *server)
{
    struct scoreboard *board = server->board;
    bool all; /* have ended by themselves */
    bool unused;

    leave_listeners(server);
    while ((atomic_load(&board->active) > 0 || atomic_load(&board->workers) > 0) &&
           !server_is_over(server, GRACE_MARGIN))
        wait_for_means(server);
    all = atomic_load(&board->active) <= 0 && atomic_load(&board->workers) <= 0;
    unused = all || server->model->supervises; /* by threads of this process */
    if (all)
        await_threads(server);
    if (unused)
        close_listeners(server);
    if (unused)
        services_close(&server->services);
    if (server->context.tls != NULL && unused)
        tls_close(server->context.tls);
    /* After that: the first process of a container has the keeper for a child, too. */
    if (server->model->collect != NULL)
        server->model->collect(server, all);
    summary_print(server);
    summary_write(server, server->stats);
    process_crew_free(server);
    return 0;
}
