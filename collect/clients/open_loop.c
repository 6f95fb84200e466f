/* open_loop: a load generator whose requests start when they are due, and do not wait for others.
 *
 * usage:    open_loop --rate R [OPTION]... [ADDRESS:]PORT PATH
 * example:  collect/clients/open_loop --rate 2000 --seconds 10 7799 /small.txt
 *
 * A client of a closed loop waits for a response before it asks again: while the server is slow, it
 * asks less. Here R requests a second are due on average, whatever the server does, and the time of
 * each counts from when it was due. One that finds no connection free waits, and that counts, too.
 *
 * It says what it achieved, and whether the run is valid. The run is not valid if more than 1% of
 * the requests started late, by over 100 us or --late, because this program did not get to them; or
 * if Little's law fails, by over 5% and by over a fifth of that delay. By this law the mean number
 * of requests in progress is their rate times their mean time. Here a request is in progress from
 * when this program got to it, but its time counts from when it was due: the two differ if the
 * processor is too slow for the rate, or if others use it.
 *
 * It sleeps until the next request is due. A processor that has slept long wakes up late, in a
 * virtual machine by a fifth of a millisecond: so a long sleep ends early, and the program stays
 * awake for the rest. To stay awake all the time would take a processor from the server. If it is
 * allowed, it has real-time priority: beside the work of the kernel and others it then starts a
 * tenth as many requests late.
 *
 * With --hold all connections are opened first, each with a request that does not count, and then
 * they take turns: each speaks as often as the others. A server that takes no further one for two
 * seconds cannot hold them, and gets no load.
 *
 * It prints one JSON object. Times are in milliseconds, and of requests that were answered:
 *   asked_rate, achieved_rate   requests a second: due, and answered between --warm-up and the end
 *   due, answered               requests that count: due after --warm-up
 *   refused, cut_off, timeouts, wrong, non2xx   requests that failed, by cause
 *   late_share, latest_ms       the share of requests that started late; the greatest lateness
 *   in_progress, little         their mean number, and that by Little's law
 *   queued_most, connections_most   requests that waited for a connection, and connections, at most
 *   recovered_ms                when the last failed request was due, since --warm-up ended
 *   resumed, protocol           handshakes that resumed a session, and the version of TLS
 *   other                       with --other: answered, and the times of those; the times and the
 *                               histogram beside it are then of PATH alone
 *   threads                     with --by-thread: for each thread of the server that answered, its
 *                               number, and the count and the histogram of its answers
 *   priority                    real-time, or usual where it may not have that
 *   valid, why                  whether the run counts, or the reason why it does not
 *   histogram                   `i:count` of each bucket of histogram.h
 */
#include "arrivals.h"
#include "histogram.h"
#include "response.h"
#include "times_by_server_thread.h"
#include "tool.h"
#include "wire.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MOST = 30000, EVENTS = 256, READ_BYTES = 65536, REQUEST_BYTES = 512 };
/* How many connections are opened at once; and how long a server may take no further one until it
 * has as many as it can hold. */
enum { OPENED_AT_ONCE = 64, HOLD_MILLISECONDS = 2000 };
/* How many connections come from an address. */
enum { SOURCE_CONNECTIONS = 1000 };
static const double REQUESTS_MOST = 1e8, RATE_LEAST = 0.1, RATE_MOST = 1e6;
/* In nanoseconds, as all times here. */
static const int64_t SECOND = 1000000000, MICROSECOND = 1000;
/* In each LOOK all connections are searched for overdue requests, at most so many at a time. */
static const int64_t LOOK = 10000000;
enum { LOOK_CONNECTIONS = 1000 };
/* The last part of a long wait, for which it stays awake. */
static const int64_t AWAKE = 250000;
/* A rest after --hold, in which the parent looks at the server. */
static const int64_t HOLD_REST = 500000000;
static const double LATE_SHARE_MOST = 0.01, LITTLE_MOST = 0.05;
/* The share of --late that Little's law tolerates: no client is without any delay. */
static const double LITTLE_DELAY_SHARE = 0.2;

enum state { FREE, OPEN, GREETING, ASKED, ENDING };
enum failure { REFUSED, CUT_OFF, TIMED_OUT, WRONG, NON2XX, FAILURES };

/* The requests for a path. */
struct target {
    const char *path;
    long answered;
    long long length;    /* of the last document; -1: none yet */
    double sum, squares; /* of the times, in seconds */
    struct histogram histogram;
};

struct connection {
    struct wire wire;
    enum state state;
    uint32_t turn; /* how many sockets it has had */
    int64_t due;   /* of its request */
    struct target *target;
    bool is_used; /* a request has been answered on it */
    int thread;   /* the thread of the server that wrote the end of the response; 0: unnamed */
    struct response response;
    struct connection *next; /* in a list */
};

struct open_loop {
    double rate, seconds, warm_up, surge;
    bool poisson, keeps, holds, tells_parent;
    uint64_t seed;
    int connections, looked_at;
    int64_t timeout, late_after, start, window, end, looked;
    bool is_real_time;
    bool stays_awake;           /* until the next request is due */
    struct target first, other; /* of the paths */
    double other_share;
    struct arrivals draws; /* which requests are for the other path */
    struct by_thread by_thread;
    const char *protocol;
    struct wires wires;
    int events;
    struct connection *all, *free, *open; /* the last two are lists */
    struct connection *open_last;
    int open_count;
    struct arrivals noticed, started; /* the same arrivals: the next to notice, and to start */
    long waiting, waiting_most, in_progress, without_port;
    int held, held_most; /* connections */
    /* These count requests that were due in the window alone. */
    long due, answered, late, resumed;
    long answered_meanwhile; /* in the window, also those that were due before */
    long failures[FAILURES];
    long long bytes;
    int64_t latest, changed, last, last_failed;
    double area;       /* of requests in progress over time */
    double sum_of_all; /* of the times of all requests, in seconds */
};

static const char usage[] =
    "usage: open_loop --rate R [OPTION]... [ADDRESS:]PORT PATH\n"
    "Asks a server (127.0.0.1) for PATH, R times a second, whether or not earlier requests are "
    "answered.\n"
    "  --rate R          requests a second\n"
    "  --arrivals HOW    poisson: at random, as those of many clients are; or even (poisson)\n"
    "  --seed N          of the random times (1)\n"
    "  --seconds S       how long requests are due (10), without\n"
    "  --warm-up S       the time before, whose requests do not count (0)\n"
    "  --surge PERCENT   of the rate, in that time (100)\n"
    "  --other PATH      ask for this path, too,\n"
    "  --other-share P   with so many percent of the requests (5)\n"
    "  --by-thread       tell the threads of the server apart (those of --service work)\n"
    "  --keep-alive      requests share connections; otherwise each has its own\n"
    "  --connections N   so many connections at once; more requests wait (1000)\n"
    "  --hold            open all of them first, with --keep-alive; then they take turns\n"
    "  --tell-parent     send the parent SIGUSR1 when they are open\n"
    "  --late US         a request that starts so long after it was due is late (100)\n"
    "  --timeout MS      a request that is not answered by then has failed (10000)\n"
    "  --tls HOW         by TLS, each session `new`, or `resumed` by a ticket\n"
    "  --udp             a datagram for each request, and one for its response\n"
    "  --help            print this\n";

/* ---- what is counted ---- */

static bool counts(const struct open_loop *loop, int64_t due)
{
    return due >= loop->window;
}

/* The number of requests in progress changes: adds up what it was until now. */
static void change_progress(struct open_loop *loop, int by, int64_t time)
{
    loop->area += (double)loop->in_progress * (double)(time - loop->changed);
    loop->in_progress += by;
    loop->changed = time;
}

/* A request has ended. Returns the time since it was due; -1 if it does not count. */
static int64_t finish(struct open_loop *loop, int64_t due, int64_t time)
{
    if (!counts(loop, due))
        return -1;
    change_progress(loop, -1, time);
    loop->last = time;
    loop->sum_of_all += (double)(time - due) / 1e9;
    return time - due;
}

static void fail(struct open_loop *loop, int64_t due, enum failure failure)
{
    if (finish(loop, due, tool_nanoseconds()) < 0)
        return;
    loop->failures[failure]++;
    if (due > loop->last_failed)
        loop->last_failed = due;
}

static void note_answer(struct open_loop *loop, const struct connection *connection)
{
    const struct response *response = &connection->response;
    struct target *target = connection->target;
    int64_t ended = tool_nanoseconds(), time = finish(loop, connection->due, ended);

    loop->answered_meanwhile += ended >= loop->window && ended <= loop->end;
    if (time < 0)
        return;
    loop->answered++;
    loop->bytes += response->body + (long long)response->head_bytes;
    target->answered++;
    target->sum += (double)time / 1e9;
    target->squares += (double)time / 1e9 * ((double)time / 1e9);
    histogram_note(&target->histogram, time / 1000);
    if (loop->by_thread.wanted)
        by_thread_note(&loop->by_thread, connection->thread, time / 1000);
}

/* ---- connections ---- */

static void push(struct connection **list, struct connection *connection)
{
    connection->next = *list;
    *list = connection;
}

static struct connection *pop(struct connection **list)
{
    struct connection *connection = *list;

    *list = connection->next;
    return connection;
}

/* Puts a connection among the open ones. Those that take turns come last; of others, the one that
 * was used last is used first. */
static void push_open(struct open_loop *loop, struct connection *connection)
{
    loop->open_count++;
    if (loop->open == NULL)
        loop->open_last = connection;
    if (!loop->holds || loop->open == NULL) {
        push(&loop->open, connection);
        return;
    }
    connection->next = NULL;
    loop->open_last->next = connection;
    loop->open_last = connection;
}

static struct connection *pop_open(struct open_loop *loop)
{
    loop->open_count--;
    return pop(&loop->open);
}

/* An event names the connection and its turn: it may be read after that socket was closed, and the
 * next one opened. */
static void watch(struct open_loop *loop, struct connection *connection, uint32_t events, int how)
{
    uint64_t number = (uint64_t)(connection - loop->all);
    struct epoll_event event = {.events = events,
                                .data.u64 = (uint64_t)connection->turn << 32 | number};

    if (epoll_ctl(loop->events, how, connection->wire.socket, &event) < 0)
        err(1, "epoll");
}

static void leave(struct open_loop *loop, struct connection *connection)
{
    wire_close(&connection->wire);
    connection->state = FREE;
    loop->held--;
    push(&loop->free, connection);
}

/* The connection has failed, and its request with it. */
static void give_up(struct open_loop *loop, struct connection *connection, enum failure failure)
{
    leave(loop, connection);
    fail(loop, connection->due, failure);
}

/* Opens a connection for a request. */
static void start_new(struct open_loop *loop, int64_t due, struct target *target)
{
    struct connection *connection = pop(&loop->free);

    connection->due = due;
    connection->target = target;
    connection->is_used = false;
    connection->state = GREETING;
    connection->turn++;
    if (++loop->held > loop->held_most)
        loop->held_most = loop->held;
    if (!wire_open(&loop->wires, &connection->wire)) {
        loop->without_port += errno == EADDRNOTAVAIL;
        give_up(loop, connection, REFUSED);
        return;
    }
    watch(loop, connection, EPOLLOUT, EPOLL_CTL_ADD);
}

/* The connection has ended before the response did. A server may close a kept connection at any
 * time between two requests: then the request goes on a new one, as browsers do it. */
static void lose(struct open_loop *loop, struct connection *connection)
{
    if (!connection->is_used || connection->response.head_bytes > 0 ||
        loop->wires.kind == WIRE_UDP) {
        give_up(loop, connection, loop->wires.kind == WIRE_UDP ? REFUSED : CUT_OFF);
        return;
    }
    leave(loop, connection);
    start_new(loop, connection->due, connection->target);
}

static void ask(struct open_loop *loop, struct connection *connection)
{
    char request[REQUEST_BYTES];
    int version = loop->keeps || loop->wires.kind == WIRE_UDP;
    int length = snprintf(request, sizeof(request), "GET %s HTTP/1.%d\r\nHost: localhost\r\n\r\n",
                          connection->target->path, version);

    response_begin(&connection->response);
    connection->thread = 0;
    connection->state = ASKED;
    if (!wire_send(&connection->wire, request, length))
        lose(loop, connection);
}

/* Continues to connect, and then sends the request. */
static void greet(struct open_loop *loop, struct connection *connection)
{
    switch (wire_greet(&connection->wire)) {
    case WIRE_WANTS_READ:
        watch(loop, connection, EPOLLIN, EPOLL_CTL_MOD);
        break;
    case WIRE_WANTS_WRITE:
        watch(loop, connection, EPOLLOUT, EPOLL_CTL_MOD);
        break;
    case WIRE_FAILED:
        give_up(loop, connection, REFUSED);
        break;
    case WIRE_READY:
        if (connection->wire.tls)
            loop->protocol = SSL_get_version(connection->wire.tls);
        loop->resumed += wire_resumed(&connection->wire);
        watch(loop, connection, EPOLLIN, EPOLL_CTL_MOD);
        ask(loop, connection);
    }
}

/* Takes a connection for a request: an open one, or one that it opens. */
static void start(struct open_loop *loop, int64_t due, struct target *target)
{
    struct connection *connection;

    if (loop->open == NULL) {
        start_new(loop, due, target);
        return;
    }
    connection = pop_open(loop);
    connection->due = due;
    connection->target = target;
    ask(loop, connection);
}

/* ---- responses ---- */

/* The response is whole. Without keep-alive the server closes the connection next. */
static void take_answer(struct open_loop *loop, struct connection *connection)
{
    const struct response *response = &connection->response;
    struct target *target = connection->target;
    bool is_kept = !response->closes && (loop->keeps || loop->wires.kind == WIRE_UDP);

    if (response->body > response->length ||
        (target->length >= 0 && response->length != target->length && response->status == 200)) {
        give_up(loop, connection, WRONG);
        return;
    }
    if (response->status < 200 || response->status > 299) {
        give_up(loop, connection, NON2XX);
        return;
    }
    target->length = response->length;
    note_answer(loop, connection);
    connection->is_used = true;
    connection->state = is_kept ? OPEN : ENDING;
    if (is_kept)
        push_open(loop, connection);
}

/* An open connection that no request uses has ended: takes it off the list of open ones. */
static void forget(struct open_loop *loop, const struct connection *connection)
{
    struct connection **at = &loop->open, *before = NULL;

    for (; *at != NULL && *at != connection; at = &(*at)->next)
        before = *at;
    if (*at == NULL)
        return;
    loop->open_count--;
    *at = connection->next;
    if (connection == loop->open_last)
        loop->open_last = before;
}

/* The other end has closed the connection, or broken it. */
static void take_end(struct open_loop *loop, struct connection *connection, bool is_closed)
{
    struct response *response = &connection->response;

    if (connection->state == ASKED && is_closed && response->status > 0 && response->length < 0) {
        response->length = response->body; /* the end says how long it is */
        response->closes = true;
        take_answer(loop, connection);
    } else if (connection->state == ASKED) {
        lose(loop, connection);
        return;
    }
    if (connection->state == OPEN)
        forget(loop, connection);
    if (connection->state != FREE)
        leave(loop, connection);
}

static void take(struct open_loop *loop, struct connection *connection)
{
    static char bytes[READ_BYTES];
    ssize_t count = wire_receive(&connection->wire, bytes, sizeof(bytes));

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0)
        take_end(loop, connection, count == 0);
    else if (connection->state == ASKED &&
             (!response_take(&connection->response, bytes, (size_t)count) ||
              (connection->response.headed && connection->response.status <= 0)))
        give_up(loop, connection, WRONG);
    else if (connection->state == ASKED && response_whole(&connection->response)) {
        connection->thread = by_thread_named(bytes, (size_t)count);
        take_answer(loop, connection);
    } else if (connection->state == OPEN) /* bytes that nobody asked for */
        take_end(loop, connection, false);
}

static void take_event(struct open_loop *loop, uint64_t number)
{
    struct connection *connection = &loop->all[(uint32_t)number];

    if (connection->turn != number >> 32)
        return;
    if (connection->state == GREETING)
        greet(loop, connection);
    else if (connection->state != FREE)
        take(loop, connection);
}

/* ---- time ---- */

static int64_t due_of(const struct open_loop *loop, const struct arrivals *arrivals)
{
    return loop->start + (int64_t)arrivals->next;
}

/* Counts the requests that have become due. */
static void notice(struct open_loop *loop)
{
    int64_t time = tool_nanoseconds(), due;

    while ((due = due_of(loop, &loop->noticed)) <= time && due < loop->end) {
        arrivals_step(&loop->noticed);
        loop->stays_awake = false;
        if (++loop->waiting > loop->waiting_most)
            loop->waiting_most = loop->waiting;
        if (!counts(loop, due))
            continue;
        change_progress(loop, 1, time);
        loop->due++;
        loop->late += time - due > loop->late_after;
        if (time - due > loop->latest)
            loop->latest = time - due;
    }
}

/* Returns for which path the next request is. */
static struct target *draw_target(struct open_loop *loop)
{
    double number;

    if (loop->other.path == NULL)
        return &loop->first;
    number = (double)(arrivals_random(&loop->draws) >> 11) / 9007199254740992.0;
    return number < loop->other_share ? &loop->other : &loop->first;
}

/* Starts requests that wait, as long as there are connections. */
static void start_waiting(struct open_loop *loop)
{
    while (loop->waiting > 0 && (loop->open != NULL || loop->free != NULL)) {
        int64_t due = due_of(loop, &loop->started);
        struct target *target = draw_target(loop);
        arrivals_step(&loop->started);
        loop->waiting--;
        if (tool_nanoseconds() - due > loop->timeout)
            fail(loop, due, TIMED_OUT);
        else
            start(loop, due, target);
    }
}

/* Returns how long it is from one look to the next: many connections are looked through in turn. */
static int64_t look_time(const struct open_loop *loop)
{
    return loop->connections > LOOK_CONNECTIONS ? LOOK * LOOK_CONNECTIONS / loop->connections
                                                : LOOK;
}

/* Ends the requests whose time is over, and connections that the server does not close. */
static void expire(struct open_loop *loop)
{
    int64_t time = tool_nanoseconds();

    if (time < loop->looked + look_time(loop))
        return;
    loop->looked = time;
    for (int i = 0; i < LOOK_CONNECTIONS && i < loop->connections; i++) {
        struct connection *connection = &loop->all[loop->looked_at];
        loop->looked_at = (loop->looked_at + 1) % loop->connections;
        if (connection->state < GREETING || time - connection->due <= loop->timeout)
            continue;
        if (connection->state == ENDING)
            leave(loop, connection);
        else
            give_up(loop, connection, TIMED_OUT);
        notice(loop);
        start_waiting(loop);
    }
}

static bool is_over(const struct open_loop *loop)
{
    return due_of(loop, &loop->noticed) >= loop->end && loop->waiting == 0 &&
           loop->in_progress == 0;
}

/* Returns how long to sleep: until shortly before the next request is due if that is long, and then
 * not at all; or until the next look for overdue ones. */
static struct timespec pause_of(struct open_loop *loop)
{
    int64_t time = tool_nanoseconds(), look = loop->looked + look_time(loop) - time, pause = look;
    int64_t due = due_of(loop, &loop->noticed);

    if (due < loop->end && due - time - AWAKE < look) {
        bool is_long = due - time > AWAKE;
        pause = is_long ? due - time - AWAKE : loop->stays_awake ? 0 : due - time;
        loop->stays_awake = loop->stays_awake || is_long;
    }
    if (pause < 0)
        pause = 0;
    return (struct timespec){pause / SECOND, pause % SECOND};
}

/* Requests that become due while events are dealt with start between two of them. */
static void run(struct open_loop *loop)
{
    struct epoll_event events[EVENTS];

    while (!is_over(loop)) {
        struct timespec pause = pause_of(loop);
        int count = epoll_pwait2(loop->events, events, EVENTS, &pause, NULL);
        for (int i = 0; i < count; i++) {
            take_event(loop, events[i].data.u64);
            notice(loop);
            start_waiting(loop);
        }
        notice(loop);
        expire(loop);
        start_waiting(loop);
    }
}

/* Opens all connections, some at a time; false if the server does not hold them. */
static bool open_all(struct open_loop *loop)
{
    struct epoll_event events[EVENTS];
    int64_t gained = tool_nanoseconds();
    int most = 0;

    while (loop->open_count < loop->connections) {
        for (int i = loop->held - loop->open_count; i < OPENED_AT_ONCE && loop->free != NULL; i++)
            start_new(loop, tool_nanoseconds(), &loop->first);
        int count = epoll_wait(loop->events, events, EVENTS, HOLD_MILLISECONDS / 10);
        for (int i = 0; i < count; i++)
            take_event(loop, events[i].data.u64);
        if (loop->open_count > most) {
            most = loop->open_count;
            gained = tool_nanoseconds();
        } else if (tool_nanoseconds() - gained > HOLD_MILLISECONDS * (SECOND / 1000)) {
            return false;
        }
    }
    return true;
}

/* ---- results ---- */

/* Returns why the run is not valid; NULL if it is. */
static const char *problem(const struct open_loop *loop, double in_progress, double little)
{
    static char text[160];
    double late = loop->due > 0 ? (double)loop->late / (double)loop->due : 0;
    double unlike = fabs(in_progress - little) / (little > 0 ? little : 1);
    double delay = loop->due > 0 ? unlike * loop->sum_of_all / (double)loop->due : 0;

    if (loop->holds && loop->due == 0) {
        snprintf(text, sizeof(text), "cannot hold: %d of %d", loop->open_count, loop->connections);
        return text;
    }
    if (loop->due == 0)
        return "no request was due";
    if (loop->without_port > 0) {
        snprintf(text, sizeof(text), "%ld connections found no free port on this machine",
                 loop->without_port);
        return text;
    }
    if (loop->by_thread.unnamed > 0) {
        snprintf(text, sizeof(text),
                 "%ld responses named no thread: --by-thread is for --service work",
                 loop->by_thread.unnamed);
        return text;
    }
    if (loop->by_thread.too_many > 0) {
        snprintf(text, sizeof(text),
                 "over %d threads answered: --by-thread is for servers with workers",
                 BY_THREAD_MOST);
        return text;
    }
    if (late > LATE_SHARE_MOST) {
        snprintf(text, sizeof(text),
                 "%.1f%% of the requests started over %lld us late: the client "
                 "is too slow for this rate, or others had its processor",
                 late * 100, (long long)(loop->late_after / MICROSECOND));
        return text;
    }
    if (unlike > LITTLE_MOST && delay * 1e9 > LITTLE_DELAY_SHARE * (double)loop->late_after) {
        snprintf(text, sizeof(text),
                 "Little's law does not hold: %.3f requests were in progress, not %.3f",
                 in_progress, little);
        return text;
    }
    return NULL;
}

static void tell_times(const struct target *target)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"min_ms", 0},    {"p50_ms", 0.5},    {"p90_ms", 0.9}, {"p95_ms", 0.95},
                     {"p99_ms", 0.99}, {"p999_ms", 0.999}, {"max_ms", 1}};
    double count = target->answered > 0 ? (double)target->answered : 1, mean = target->sum / count;
    double variance = target->squares / count - mean * mean;

    printf(", \"mean_ms\": %.4f, \"sd_ms\": %.4f", mean * 1000,
           sqrt(variance > 0 ? variance : 0) * 1000);
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++)
        printf(", \"%s\": %.4f", quantiles[i].name,
               target->answered > 0
                   ? histogram_quantile(&target->histogram, quantiles[i].share) / 1000
                   : 0);
}

static void tell_other(const struct target *other)
{
    if (other->path == NULL)
        return;
    printf(", \"other\": {\"answered\": %ld, \"length\": %lld", other->answered, other->length);
    tell_times(other);
    printf("}");
}

static void tell(const struct open_loop *loop)
{
    static const char *const names[] = {"refused", "cut_off", "timeouts", "wrong", "non2xx"};
    double seconds = (double)(loop->last - loop->window) / 1e9;
    double in_progress = seconds > 0 ? loop->area / 1e9 / seconds : 0;
    double little = seconds > 0 ? loop->sum_of_all / seconds : 0;
    const char *why = problem(loop, in_progress, little);

    printf("{\"asked_rate\": %g, \"achieved_rate\": %.3f, \"arrivals\": \"%s\", \"seed\": %llu",
           loop->rate, (double)loop->answered_meanwhile / loop->seconds,
           loop->poisson ? "poisson" : "even", (unsigned long long)loop->seed);
    printf(", \"seconds\": %.6f, \"due\": %ld, \"answered\": %ld", seconds, loop->due,
           loop->answered);
    for (int i = 0; i < FAILURES; i++)
        printf(", \"%s\": %ld", names[i], loop->failures[i]);
    printf(", \"length\": %lld, \"bytes\": %lld", loop->first.length, loop->bytes);
    tell_times(&loop->first);
    tell_other(&loop->other);
    if (loop->by_thread.wanted) {
        printf(", \"threads\": [");
        by_thread_print(&loop->by_thread);
        printf("]");
    }
    printf(", \"late_share\": %.6f, \"latest_ms\": %.4f",
           loop->due > 0 ? (double)loop->late / (double)loop->due : 0, (double)loop->latest / 1e6);
    printf(
        ", \"in_progress\": %.4f, \"little\": %.4f, \"queued_most\": %ld, \"connections_most\": %d",
        in_progress, little, loop->waiting_most, loop->held_most);
    printf(", \"recovered_ms\": %.3f",
           loop->last_failed > 0 ? (double)(loop->last_failed - loop->window) / 1e6 : 0);
    printf(", \"resumed\": %ld, \"protocol\": \"%s\", \"valid\": %s, \"why\": \"%s\", "
           "\"priority\": \"%s\", \"histogram\": \"",
           loop->resumed, loop->protocol, why == NULL ? "true" : "false", why == NULL ? "" : why,
           loop->is_real_time ? "real-time" : "usual");
    histogram_print(&loop->first.histogram);
    printf("\"}\n");
}

/* ---- the command line ---- */

/* Returns true if the text is the second of two words, false if it is the first. */
static bool choice(const char *text, const char *first, const char *second, const char *what)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
        errx(2, "%s is %s or %s, not '%s'", what, first, second, text);
    return strcmp(text, second) == 0;
}

static void take_wire(struct wires *wires, enum wire_kind kind)
{
    if (wires->kind != WIRE_TCP && wires->kind != kind)
        errx(2, "--udp and --tls do not go together");
    wires->kind = kind;
}

/* Takes an option that says which load it is; false if it is another one. */
static bool load_option_take(struct open_loop *loop, int option, const char *text)
{
    switch (option) {
    case 'r':
        loop->rate = tool_decimal(text, RATE_LEAST, RATE_MOST, "--rate");
        break;
    case 'a':
        loop->poisson = choice(text, "even", "poisson", "--arrivals");
        break;
    case 'i':
        loop->seed = (uint64_t)tool_number(text, 0, INT64_MAX, "--seed");
        break;
    case 's':
        loop->seconds = tool_decimal(text, 0.01, 86400, "--seconds");
        break;
    case 'w':
        loop->warm_up = tool_decimal(text, 0, 86400, "--warm-up");
        break;
    case 'g':
        loop->surge = tool_decimal(text, 1, 10000, "--surge") / 100;
        break;
    case 'o':
        loop->other.path = tool_path(text);
        break;
    case 'p':
        loop->other_share = tool_decimal(text, 0, 100, "--other-share") / 100;
        break;
    default:
        return false;
    }
    return true;
}

static void option_take(struct open_loop *loop, int option, const char *text)
{
    if (load_option_take(loop, option, text))
        return;
    switch (option) {
    case 'b':
        loop->by_thread.wanted = true;
        break;
    case 'k':
        loop->keeps = true;
        break;
    case 'l':
        loop->holds = true;
        break;
    case 'n':
        loop->tells_parent = true;
        break;
    case 'c':
        loop->connections = (int)tool_number(text, 1, CONNECTIONS_MOST, "--connections");
        break;
    case 'd':
        loop->late_after = tool_number(text, 1, 10000000, "--late") * MICROSECOND;
        break;
    case 't':
        loop->timeout = tool_number(text, 1, 600000, "--timeout") * (SECOND / 1000);
        break;
    case 'e':
        take_wire(&loop->wires, WIRE_TLS);
        loop->wires.resume = choice(text, "new", "resumed", "--tls");
        break;
    case 'u':
        take_wire(&loop->wires, WIRE_UDP);
        break;
    default:
        fputs(usage, option == 'h' ? stdout : stderr);
        exit(option == 'h' ? 0 : 2);
    }
}

static void options_take(struct open_loop *loop, int count, char *arguments[])
{
    static const struct option table[] = {{"rate", required_argument, NULL, 'r'},
                                          {"arrivals", required_argument, NULL, 'a'},
                                          {"seed", required_argument, NULL, 'i'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"warm-up", required_argument, NULL, 'w'},
                                          {"surge", required_argument, NULL, 'g'},
                                          {"other", required_argument, NULL, 'o'},
                                          {"other-share", required_argument, NULL, 'p'},
                                          {"by-thread", no_argument, NULL, 'b'},
                                          {"keep-alive", no_argument, NULL, 'k'},
                                          {"hold", no_argument, NULL, 'l'},
                                          {"tell-parent", no_argument, NULL, 'n'},
                                          {"connections", required_argument, NULL, 'c'},
                                          {"late", required_argument, NULL, 'd'},
                                          {"timeout", required_argument, NULL, 't'},
                                          {"tls", required_argument, NULL, 'e'},
                                          {"udp", no_argument, NULL, 'u'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};

    for (int option; (option = getopt_long(count, arguments, "", table, NULL)) != -1;)
        option_take(loop, option, optarg);
    if (loop->rate <= 0 || count - optind != 2) {
        fputs(usage, stderr);
        exit(2);
    }
    if (loop->holds && !loop->keeps)
        errx(2, "--hold keeps connections open: it needs --keep-alive");
    if (loop->tells_parent && !loop->holds)
        errx(2, "--tell-parent is about connections that are held: it needs --hold");
    if (loop->rate * (loop->warm_up * loop->surge + loop->seconds) > REQUESTS_MOST)
        errx(2, "these are over %.0f requests", REQUESTS_MOST);
    loop->wires.server = wire_server(arguments[optind]);
    loop->first.path = tool_path(arguments[optind + 1]);
}

/* ---- */

static bool take_priority(void)
{
    struct sched_param least = {.sched_priority = 1};

    return sched_setscheduler(0, SCHED_FIFO, &least) == 0;
}

/* Returns the address that a connection comes from. To a server on this machine there are several:
 * with many connections from one address to one port, the kernel looks long for a free port. */
static in_addr_t source_of(const struct open_loop *loop, int connection)
{
    in_addr_t server = ntohl(loop->wires.server.sin_addr.s_addr);
    int sources = (loop->connections + SOURCE_CONNECTIONS - 1) / SOURCE_CONNECTIONS;
    bool is_here = server >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;

    return is_here && sources > 1 ? htonl(INADDR_LOOPBACK + (in_addr_t)(connection % sources)) : 0;
}

static void prepare(struct open_loop *loop)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1); /* it sleeps to the nanosecond */
    signal(SIGPIPE, SIG_IGN);    /* of a TLS connection that was cut off */
    loop->is_real_time = take_priority();
    tool_allow_connections(loop->connections);
    wires_open(&loop->wires);
    loop->events = epoll_create1(EPOLL_CLOEXEC);
    loop->all = calloc((size_t)loop->connections, sizeof(*loop->all));
    if (loop->events < 0 || !loop->all)
        err(1, "cannot make %d connections", loop->connections);
    for (int i = loop->connections - 1; i >= 0; i--) {
        loop->all[i].wire.socket = -1;
        loop->all[i].wire.source = source_of(loop, i);
        push(&loop->free, &loop->all[i]);
    }
    loop->noticed = arrivals_begin(loop->rate, loop->poisson, loop->seed);
    arrivals_surge(&loop->noticed, loop->surge, loop->warm_up);
    loop->started = loop->noticed;
    loop->draws = arrivals_begin(loop->rate, true, ~loop->seed);
}

/* The time begins: requests are due from now on. */
static void begin_time(struct open_loop *loop)
{
    loop->start = tool_nanoseconds();
    loop->window = loop->changed = loop->last = loop->start + (int64_t)(loop->warm_up * 1e9);
    loop->end = loop->window + (int64_t)(loop->seconds * 1e9);
}

/* Opens the connections, and tells the parent. While the parent reads the memory of the server, it
 * gets no request. Returns false if the server does not hold the connections. */
static bool hold(struct open_loop *loop)
{
    const struct timespec rest = {.tv_nsec = HOLD_REST};

    if (!open_all(loop))
        return false;
    if (loop->tells_parent) {
        kill(getppid(), SIGUSR1);
        nanosleep(&rest, NULL);
    }
    return true;
}

int main(int count, char *arguments[])
{
    struct open_loop loop = {.seconds = 10,
                             .surge = 1,
                             .poisson = true,
                             .seed = 1,
                             .connections = 1000,
                             .timeout = 10 * 1000000000LL,
                             .late_after = 100 * MICROSECOND,
                             .first.length = -1,
                             .other.length = -1,
                             .other_share = 0.05,
                             .protocol = "-"};

    options_take(&loop, count, arguments);
    prepare(&loop);
    loop.window = INT64_MAX; /* no request counts before the time begins */
    if (!loop.holds || hold(&loop)) {
        begin_time(&loop);
        run(&loop);
    }
    tell(&loop);
    for (int i = 0; i < loop.connections; i++)
        wire_end(&loop.all[i].wire);
    by_thread_free(&loop.by_thread);
    wires_close(&loop.wires);
    free(loop.all);
    return 0;
}
