/* witness: a load generator that also counts lost requests, and goes on after failures.
 *
 * usage:    witness [OPTION]... [ADDRESS:]PORT PATH
 * example:  collect/clients/witness --requests 1000 --concurrency 10 7799 /small.txt
 *
 * Like ab, each client connects, sends a request, reads the response to its end, and begins again,
 * until --requests responses have arrived. Unlike ab it goes on when a connection is refused or cut
 * off (the client tries again a millisecond later), and ends after --seconds, even if no response
 * arrives.
 *
 * With --tls it speaks HTTPS, with new or resumed sessions; with --udp request and response are
 * datagrams. A datagram that is not answered within --timeout is lost, and the client tries again
 * from another socket, so that it does not take a late response for the new one.
 *
 * With --fault PATH one client requests that path after half of the responses (or --after): a
 * request that crashes servers made for this study. From then on it measures how long it takes
 * until every client was served again, and gives up when none was for --patience.
 *
 * It prints two lines. The first one is `witness`, and
 *   seconds complete lost refused unanswered non2xx length again_ms
 *   mean sd min p50 p90 p95 p99 max bytes wrong resumed protocol
 * complete    whole responses
 * lost        requests whose first try was refused, cut off or (UDP) not answered in time, without
 *             the fatal one
 * refused     tries that no server accepted
 * unanswered  requests that still waited at the end; their times so far count (all times are in
 *             milliseconds, from the first try)
 * length      of the last whole response
 * again_ms    from the fatal request until every client had a response to a request that it sent
 *             after the server broke that connection; `never`, or `-` without a fault
 * wrong       responses that are not as long as they say, or not as long as the last one, and
 *             datagrams that are no response
 * resumed     handshakes of a resumed session
 * protocol    the version of TLS; `-` without it
 * The second line is a histogram of the times: `histogram`, and `i:count` for each bucket, which
 * holds the times from 0.001 ms * 1.02^i up to the next one. The status is 3 if the fatal request
 * was answered.
 */
#include "response.h"
#include "tool.h"
#include "wire.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MOST = 4096, REQUESTS_MOST = 10000000, READ_BYTES = 65536, EVENTS = 256 };
enum { REQUEST_BYTES = 512 };
static const double RETRY_SECONDS = 0.001;
/* The kernel sends a lost TCP segment again after this time, at the earliest. */
static const double TIMEOUT_SECONDS = 0.2;

enum state { RESTING, GREETING, ASKED };

struct client {
    struct wire wire;
    enum state state;
    bool fatal, asking, failed, served_again;
    double first; /* when its request was first tried, */
    double tried; /* and when it was last */
    double retry; /* when it will be again */
    struct response response;
};

struct witness {
    long requests, after, begun, complete, lost, refused, unanswered, non2xx, wrong, resumed;
    int concurrency, again_count;
    long long length, bytes;
    double seconds, patience, timeout, start, last_reply, fatal_sent, broken, again;
    bool fault_done, answered_fault, never;
    const char *path, *fault, *protocol;
    struct wires wires;
    int events;
    struct client *clients;
    double *times;
    long time_count;
};

static const char usage[] =
    "usage: witness [OPTION]... [ADDRESS:]PORT PATH\n"
    "Asks a server (127.0.0.1) for PATH, and tells what was answered and what was lost.\n"
    "  --requests N      the number of responses (1000)\n"
    "  --concurrency N   clients at once (1)\n"
    "  --seconds S       not longer than this (10)\n"
    "  --tls HOW         by TLS, each session `new`, or `resumed` by a ticket\n"
    "  --udp             a datagram for each request, and one for its response\n"
    "  --timeout MS      a datagram that is not answered by then is lost (200)\n"
    "  --fault PATH      one client asks for PATH, which the server dies of,\n"
    "  --after N         after N responses (half of them)\n"
    "  --patience MS     how long nobody may be answered after that (1000)\n";

/* ---- one client ---- */

static void client_rest(struct client *client)
{
    wire_close(&client->wire);
    client->state = RESTING;
}

/* Tries a request again that has failed, unless it is the fatal one. */
static void client_failed(struct witness *witness, struct client *client)
{
    client_rest(client);
    if (client->fatal) {
        client->fatal = client->asking = false;
        witness->broken = witness->last_reply = tool_now();
        return;
    }
    if (!client->failed)
        witness->lost++;
    client->failed = true;
    client->retry = tool_now() + RETRY_SECONDS;
}

static void client_refused(struct witness *witness, struct client *client)
{
    witness->refused++;
    client_failed(witness, client);
}

static void client_ask(struct witness *witness, struct client *client)
{
    char request[REQUEST_BYTES];
    const char *path = client->fatal ? witness->fault : witness->path;
    int version = witness->wires.kind == WIRE_UDP; /* a datagram keeps no connection */
    int length = snprintf(request, sizeof(request), "GET %s HTTP/1.%d\r\nHost: localhost\r\n\r\n",
                          path, version);
    if (client->fatal)
        witness->fatal_sent = tool_now();
    client->state = ASKED;
    if (!wire_send(&client->wire, request, length))
        client_refused(witness, client);
}

/* Continues to connect, and then sends the request. */
static void client_greet(struct witness *witness, struct client *client)
{
    switch (wire_greet(&client->wire)) {
    case WIRE_WANTS_READ:
        tool_watch(witness->events, client->wire.socket, EPOLLIN, EPOLL_CTL_MOD, client);
        break;
    case WIRE_WANTS_WRITE:
        tool_watch(witness->events, client->wire.socket, EPOLLOUT, EPOLL_CTL_MOD, client);
        break;
    case WIRE_FAILED:
        client_refused(witness, client);
        break;
    case WIRE_READY:
        if (client->wire.tls)
            witness->protocol = SSL_get_version(client->wire.tls);
        witness->resumed += wire_resumed(&client->wire);
        tool_watch(witness->events, client->wire.socket, EPOLLIN, EPOLL_CTL_MOD, client);
        client_ask(witness, client);
    }
}

static void client_try(struct witness *witness, struct client *client)
{
    bool fresh = client->wire.socket < 0;
    client->tried = tool_now();
    response_begin(&client->response);
    if (fresh && !wire_open(&witness->wires, &client->wire)) {
        client_refused(witness, client);
        return;
    }
    client->state = GREETING;
    if (witness->wires.kind != WIRE_UDP) {
        tool_watch(witness->events, client->wire.socket, EPOLLOUT, EPOLL_CTL_ADD, client);
        return;
    }
    if (fresh)
        tool_watch(witness->events, client->wire.socket, EPOLLIN, EPOLL_CTL_ADD, client);
    client_ask(witness, client);
}

/* Notes that a client was served again after the server broke the fatal connection. */
static void client_served_again(struct witness *witness, struct client *client)
{
    if (witness->broken <= 0 || client->tried < witness->broken || client->served_again)
        return;
    client->served_again = true;
    if (++witness->again_count == witness->concurrency)
        witness->again = tool_now() - witness->fatal_sent;
}

static void client_answered(struct witness *witness, struct client *client)
{
    const struct response *response = &client->response;
    if (response->body != response->length ||
        (witness->complete > 0 && !client->fatal && response->body != witness->length))
        witness->wrong++;
    witness->complete++;
    witness->length = response->body;
    witness->bytes += response->body + (long long)response->head_bytes;
    witness->last_reply = tool_now();
    if (response->status < 200 || response->status > 299)
        witness->non2xx++;
    if (client->fatal)
        witness->answered_fault = true;
    if (witness->time_count < witness->requests)
        witness->times[witness->time_count++] = (tool_now() - client->first) * 1000;
    client_served_again(witness, client);
    if (witness->wires.kind == WIRE_UDP)
        client->state = RESTING;
    else
        client_rest(client);
    client->asking = client->fatal = false;
}

/* Takes a datagram, which must hold a whole response. */
static void client_take_datagram(struct witness *witness, struct client *client, const char *bytes,
                                 ssize_t count)
{
    if (count < 0)
        client_refused(witness, client);
    else if (response_take(&client->response, bytes, (size_t)count) &&
             response_whole(&client->response))
        client_answered(witness, client);
    else {
        witness->wrong++;
        client_failed(witness, client);
    }
}

static void client_read(struct witness *witness, struct client *client)
{
    static char bytes[READ_BYTES];
    ssize_t count = wire_receive(&client->wire, bytes, sizeof(bytes));
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (witness->wires.kind == WIRE_UDP) {
        client_take_datagram(witness, client, bytes, count);
        return;
    }
    if (count > 0 && response_take(&client->response, bytes, (size_t)count))
        return;
    if (count == 0 && response_whole(&client->response))
        client_answered(witness, client);
    else
        client_failed(witness, client);
}

/* ---- all of them ---- */

static bool again_open(const struct witness *witness)
{
    return witness->fault && witness->again < 0 && !witness->never;
}

/* Returns true if there is one more request to send: with a fault, until all are served again. */
static bool more_wanted(const struct witness *witness)
{
    return witness->begun < witness->requests || again_open(witness);
}

static void client_begin(struct witness *witness, struct client *client)
{
    client->first = tool_now();
    client->asking = true;
    client->failed = false;
    client->fatal = witness->fault && !witness->fault_done && witness->complete >= witness->after;
    if (client->fatal)
        witness->fault_done = true;
    else
        witness->begun++;
    client_try(witness, client);
}

/* Gives up datagrams that were not answered in time. Returns the milliseconds until another one is
 * late or a client is to try again, and at most `wait`. */
static int clients_forget(struct witness *witness, int wait)
{
    double time = tool_now();
    if (witness->wires.kind != WIRE_UDP)
        return wait;
    for (int i = 0; i < witness->concurrency; i++) {
        struct client *client = &witness->clients[i];
        double left = client->tried + witness->timeout - time;
        if (client->state != ASKED)
            continue;
        if (left <= 0) {
            client_failed(witness, client);
            wait = 1;
        } else if (left * 1000 < wait)
            wait = (int)(left * 1000) + 1;
    }
    return wait;
}

/* Starts clients that are due: with a new request, or the old one again. Returns the milliseconds
 * until the next one is due. */
static int clients_wake(struct witness *witness)
{
    int wait = 100;
    double time = tool_now();
    for (int i = 0; i < witness->concurrency; i++) {
        struct client *client = &witness->clients[i];
        if (client->state != RESTING)
            continue;
        if (client->asking && client->retry <= time)
            client_try(witness, client);
        else if (!client->asking && more_wanted(witness))
            client_begin(witness, client);
        if (client->state == RESTING && client->asking)
            wait = 1;
    }
    return wait;
}

static bool is_over(struct witness *witness)
{
    double time = tool_now();
    if (witness->answered_fault || time > witness->start + witness->seconds)
        return true;
    if (witness->broken > 0 && witness->again_count == 0 &&
        time > witness->last_reply + witness->patience)
        witness->never = true;
    if (witness->never)
        return true;
    return witness->complete >= witness->requests && !again_open(witness);
}

static void witness_run(struct witness *witness)
{
    struct epoll_event events[EVENTS];
    witness->start = tool_now();
    while (!is_over(witness)) {
        int wait = clients_forget(witness, clients_wake(witness));
        int count = epoll_wait(witness->events, events, EVENTS, wait);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            if (client->state == GREETING)
                client_greet(witness, client);
            else if (client->state == ASKED)
                client_read(witness, client);
        }
    }
    witness->seconds = tool_now() - witness->start;
    /* Clients that still wait count with their time so far. */
    for (int i = 0; i < witness->concurrency; i++) {
        struct client *client = &witness->clients[i];
        if (!client->asking || client->fatal || witness->complete >= witness->requests)
            continue;
        witness->unanswered++;
        if (witness->time_count < witness->requests)
            witness->times[witness->time_count++] = (tool_now() - client->first) * 1000;
    }
}

/* ---- results ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const struct witness *witness, double share)
{
    if (witness->time_count == 0)
        return 0;
    long at = (long)ceil(share * (double)witness->time_count) - 1;
    return witness->times[at < 0 ? 0 : at];
}

static void witness_tell(const struct witness *witness)
{
    double sum = 0, squares = 0, mean;
    char again[32] = "-";
    long count = witness->time_count ? witness->time_count : 1;
    for (long i = 0; i < witness->time_count; i++)
        sum += witness->times[i];
    mean = sum / (double)count;
    for (long i = 0; i < witness->time_count; i++)
        squares += (witness->times[i] - mean) * (witness->times[i] - mean);
    if (witness->fault)
        snprintf(again, sizeof(again), witness->again >= 0 ? "%.3f" : "never",
                 witness->again * 1000);
    printf("witness %.6f %ld %ld %ld %ld %ld %lld %s", witness->seconds, witness->complete,
           witness->lost, witness->refused, witness->unanswered, witness->non2xx, witness->length,
           again);
    printf(" %.3f %.3f", mean, sqrt(squares / (double)count));
    static const double shares[] = {0, 0.5, 0.9, 0.95, 0.99, 1};
    for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++)
        printf(" %.3f", percentile(witness, shares[i]));
    printf(" %lld %ld %ld %s\n", witness->bytes, witness->wrong, witness->resumed,
           witness->protocol);
}

static int bucket_of(double milliseconds)
{
    double least = 0.001;
    return (int)floor(log((milliseconds > least ? milliseconds : least) / least) / log(1.02) +
                      1e-9);
}

/* The times are in ascending order. */
static void histogram_tell(const struct witness *witness)
{
    printf("histogram");
    for (long i = 0, next; i < witness->time_count; i = next) {
        int bucket = bucket_of(witness->times[i]);
        for (next = i + 1; next < witness->time_count; next++)
            if (bucket_of(witness->times[next]) != bucket)
                break;
        printf(" %d:%ld", bucket, next - i);
    }
    printf("\n");
}

/* ---- the command line ---- */

static void take_tls(struct wires *wires, const char *how)
{
    if (strcmp(how, "new") != 0 && strcmp(how, "resumed") != 0)
        errx(2, "--tls is new or resumed, not '%s'", how);
    wires->kind = WIRE_TLS;
    wires->resume = strcmp(how, "resumed") == 0;
}

static void option_take(struct witness *witness, int option, const char *text)
{
    switch (option) {
    case 'n':
        witness->requests = tool_number(text, 1, REQUESTS_MOST, "--requests");
        break;
    case 'c':
        witness->concurrency = (int)tool_number(text, 1, CLIENTS_MOST, "--concurrency");
        break;
    case 's':
        witness->seconds = (double)tool_number(text, 1, 86400, "--seconds");
        break;
    case 'f':
        witness->fault = tool_path(text);
        break;
    case 'a':
        witness->after = tool_number(text, 0, REQUESTS_MOST, "--after");
        break;
    case 'p':
        witness->patience = (double)tool_number(text, 1, 3600000, "--patience") / 1000;
        break;
    case 'u':
        witness->wires.kind = WIRE_UDP;
        break;
    case 't':
        witness->timeout = (double)tool_number(text, 1, 60000, "--timeout") / 1000;
        break;
    case 'e':
        take_tls(&witness->wires, text);
        break;
    default:
        fputs(usage, option == 'h' ? stdout : stderr);
        exit(option == 'h' ? 0 : 2);
    }
}

static void options_take(struct witness *witness, int count, char *arguments[])
{
    static const struct option table[] = {{"requests", required_argument, NULL, 'n'},
                                          {"concurrency", required_argument, NULL, 'c'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"fault", required_argument, NULL, 'f'},
                                          {"after", required_argument, NULL, 'a'},
                                          {"patience", required_argument, NULL, 'p'},
                                          {"udp", no_argument, NULL, 'u'},
                                          {"timeout", required_argument, NULL, 't'},
                                          {"tls", required_argument, NULL, 'e'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    bool udp = false, tls = false;
    for (int option; (option = getopt_long(count, arguments, "", table, NULL)) != -1;) {
        udp = udp || option == 'u';
        tls = tls || option == 'e';
        option_take(witness, option, optarg);
    }
    if (udp && tls)
        errx(2, "--udp and --tls do not go together");
    if (witness->timeout > 0 && !udp)
        errx(2, "--timeout is for --udp: a connection ends by itself");
    if (witness->timeout <= 0)
        witness->timeout = TIMEOUT_SECONDS;
}

static void witness_open(struct witness *witness)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN); /* of a TLS connection that was cut off */
    wires_open(&witness->wires);
    if (witness->after < 0)
        witness->after = witness->requests / 2;
    witness->events = epoll_create1(EPOLL_CLOEXEC);
    witness->clients = calloc((size_t)witness->concurrency, sizeof(*witness->clients));
    witness->times = calloc((size_t)witness->requests, sizeof(*witness->times));
    if (witness->events < 0 || !witness->clients || !witness->times)
        err(1, "cannot make %d clients", witness->concurrency);
    for (int i = 0; i < witness->concurrency; i++)
        witness->clients[i].wire.socket = -1;
}

int main(int count, char *arguments[])
{
    struct witness witness = {.requests = 1000,
                              .concurrency = 1,
                              .seconds = 10,
                              .patience = 1,
                              .after = -1,
                              .again = -1,
                              .protocol = "-"};
    options_take(&witness, count, arguments);
    if (count - optind != 2) {
        fputs(usage, stderr);
        return 2;
    }
    witness.wires.server = wire_server(arguments[optind]);
    witness.path = tool_path(arguments[optind + 1]);
    witness_open(&witness);
    witness_run(&witness);
    qsort(witness.times, (size_t)witness.time_count, sizeof(*witness.times), ascending);
    witness_tell(&witness);
    histogram_tell(&witness);
    for (int i = 0; i < witness.concurrency; i++)
        wire_end(&witness.clients[i].wire);
    wires_close(&witness.wires);
    free(witness.times);
    free(witness.clients);
    if (witness.answered_fault)
        errx(3, "the fatal request was answered: this server has no such fault");
    return 0;
}
