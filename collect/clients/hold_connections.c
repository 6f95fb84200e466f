/* hold_connections: holds many connections to a server, idle or slow.
 *
 * usage:    hold_connections idle|slow|read|hold COUNT [OPTION]... PORT PATH
 * example:  collect/clients/hold_connections idle 1000 7799 /small.txt
 *
 * idle: each client sends one keep-alive request, reads the response, and then sends nothing more.
 * When the server closes its connection, it counts as lost; the client connects again only with
 * --again.
 * slow: each client sends a byte a second of a request that never ends. When the server cuts it
 * off, it connects again at once; clients of the next two kinds do so, too.
 * read: each client sends one request, and reads a byte of the response a second.
 * hold: each client sends what the file of --send holds, and then nothing more.
 *
 * With --send a slow client sends these bytes first, at once, and then a byte a second.
 *
 * It prints `ready HELD COUNT` when all clients hold a connection, or when none was added for the
 * time of --patience (then HELD is below COUNT). At SIGTERM or SIGINT, or after --seconds, it
 * prints `end HELD LOST CUT REFUSED` and ends with status 0:
 * HELD     connections that are held now, out of COUNT
 * LOST     idle connections that the server closed
 * CUT      how often the server closed a connection of another kind, or answered a slow client
 * REFUSED  how often a client could not connect
 * It also ends when its parent ends.
 */
#include "response.h"
#include "tool.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    COUNT_MOST = 100000,
    /* The clients that connect at once: Apache refuses those that wait when all of its threads are
       busy. */
    OPENING_MOST = 16,
    EVENTS = 256,
    READ_BYTES = 16384,
    TICK_MILLISECONDS = 100,
    HEAD_MOST = 4096,
    /* Clients of --addresses have 127.0.1.1, 127.0.1.2 and so on, and no address ends in 0 or 255.
     */
    FIRST_NETWORK = 0x7f000100,
    HOSTS_OF_NETWORK = 254,
    ADDRESSES_MOST = 255 * HOSTS_OF_NETWORK
};

enum state { AWAY, CONNECTING, ASKED, HELD };
enum kind { IDLE, SLOW, READ, HOLD, KINDS };
static const char *const kind_names[KINDS] = {"idle", "slow", "read", "hold"};

struct client {
    int socket;
    enum state state;
    size_t sent;
    double due; /* when it connects again, or sends its next byte */
    struct response response;
};

struct crowd {
    enum kind kind;
    bool again, told;
    bool drips; /* the request itself goes out a byte a second */
    int count, addresses, opening, held, most, next;
    long lost, cut, refused;
    double patience, end, progress;
    int events, signals;
    struct sockaddr_in server;
    char head[HEAD_MOST]; /* the request; of a slow client its beginning */
    size_t head_bytes;
    struct client *clients;
};

static const char usage[] =
    "usage: hold_connections idle|slow|read|hold COUNT [OPTION]... PORT PATH\n"
    "Holds connections to 127.0.0.1:PORT and says how many it holds.\n"
    "  idle           one keep-alive request each, then silence\n"
    "  slow           a byte a second each, of a request that never ends\n"
    "  read           one request each; a byte a second of the response is read\n"
    "  hold           the bytes of --send each, then silence\n"
    "  --send FILE    what each client sends first, instead of a request for PATH\n"
    "  --addresses N  the clients have so many addresses, from 127.0.1.1 on\n"
    "  --again        idle clients also connect again when the server closes\n"
    "  --patience S   how long to wait for one more connection (2)\n"
    "  --seconds S    the longest life of the crowd (600)\n";

/* ---- one client ---- */

static void client_leave(struct crowd *crowd, struct client *client)
{
    if (client->state == HELD)
        crowd->held--;
    else if (client->state != AWAY)
        crowd->opening--;
    if (client->socket >= 0)
        close(client->socket);
    client->socket = -1;
    client->state = AWAY;
    client->due = tool_now() + 1;
}

static void client_hold(struct crowd *crowd, struct client *client)
{
    client->state = HELD;
    crowd->opening--;
    /* A client that only takes the place of another one is no progress. */
    if (++crowd->held > crowd->most) {
        crowd->most = crowd->held;
        crowd->progress = tool_now();
    }
}

static void client_refused(struct crowd *crowd, struct client *client)
{
    crowd->refused++;
    client_leave(crowd, client);
}

/* Sends the next bytes of the request: all, or one. Returns false if the connection is gone. A
 * client that has no room to send waits for its next turn. */
static bool client_send(struct crowd *crowd, struct client *client)
{
    const char *bytes = client->sent < crowd->head_bytes ? crowd->head + client->sent : "x";
    size_t rest = crowd->head_bytes - client->sent;
    size_t count = client->sent >= crowd->head_bytes || crowd->drips ? 1 : rest;
    ssize_t sent = send(client->socket, bytes, count, MSG_NOSIGNAL);
    if (sent > 0)
        client->sent += (size_t)sent;
    client->due = tool_now() + 1;
    return sent >= 0 || errno == EAGAIN || errno == EINTR;
}

static void client_ask(struct crowd *crowd, struct client *client)
{
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(client->socket, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error || !client_send(crowd, client)) {
        client_refused(crowd, client);
        return;
    }
    client->state = ASKED;
    tool_watch(crowd->events, client->socket, crowd->kind == READ ? 0 : EPOLLIN, EPOLL_CTL_MOD,
               client);
    if (crowd->kind != IDLE)
        client_hold(crowd, client);
}

/* Gives a client one of the addresses of --addresses, and one that reads slowly a small buffer. */
static void client_prepare(struct crowd *crowd, struct client *client)
{
    const int yes = 1, least = 1;
    if (crowd->kind == READ)
        setsockopt(client->socket, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
    if (!crowd->addresses)
        return;
    unsigned number = (unsigned)(client - crowd->clients) % (unsigned)crowd->addresses;
    unsigned host = FIRST_NETWORK + number / HOSTS_OF_NETWORK * 256 + number % HOSTS_OF_NETWORK + 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    setsockopt(client->socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
    if (bind(client->socket, (struct sockaddr *)&address, sizeof(address)) < 0)
        err(1, "cannot take an address of 127.0.0.0/8");
}

static void client_connect(struct crowd *crowd, struct client *client)
{
    client->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->socket < 0)
        err(1, "cannot make a socket");
    client_prepare(crowd, client);
    client->sent = 0;
    response_begin(&client->response);
    client->state = CONNECTING;
    crowd->opening++;
    if (connect(client->socket, (struct sockaddr *)&crowd->server, sizeof(crowd->server)) < 0 &&
        errno != EINPROGRESS)
        client_refused(crowd, client);
    else
        tool_watch(crowd->events, client->socket, EPOLLOUT, EPOLL_CTL_ADD, client);
}

/* The server has closed the connection, or has answered a slow client. */
static void client_ended(struct crowd *crowd, struct client *client)
{
    if (crowd->kind != IDLE)
        crowd->cut++;
    else if (client->state == HELD)
        crowd->lost++;
    else
        crowd->refused++;
    client_leave(crowd, client);
    if (crowd->again)
        client_connect(crowd, client);
}

static void client_read(struct crowd *crowd, struct client *client)
{
    char bytes[READ_BYTES];
    ssize_t count = recv(client->socket, bytes, crowd->kind == READ ? 1 : sizeof(bytes), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count > 0 && (crowd->kind == READ || crowd->kind == HOLD))
        return;
    if (count <= 0 || crowd->kind == SLOW ||
        !response_take(&client->response, bytes, (size_t)count))
        client_ended(crowd, client);
    else if (client->state == ASKED && response_whole(&client->response) &&
             client->response.status == 200)
        client_hold(crowd, client);
}

/* Handles an event of a connection. That of a slow reader is watched for its end alone. */
static void client_serve(struct crowd *crowd, struct client *client)
{
    if (client->state == CONNECTING)
        client_ask(crowd, client);
    else if (crowd->kind == READ)
        client_ended(crowd, client);
    else
        client_read(crowd, client);
}

/* Does the work of each second for a client that holds a connection. */
static void client_tick(struct crowd *crowd, struct client *client)
{
    if (crowd->kind == READ) {
        client->due = tool_now() + 1;
        client_read(crowd, client);
    } else if (crowd->kind == SLOW && !client_send(crowd, client)) {
        client_ended(crowd, client);
    }
}

/* ---- the crowd ---- */

/* Connects the clients for the first time, a few at once. */
static void crowd_gather(struct crowd *crowd)
{
    while (crowd->next < crowd->count && crowd->opening < OPENING_MOST)
        client_connect(crowd, &crowd->clients[crowd->next++]);
}

/* Each client that is due sends or reads a byte, or connects again. */
static void crowd_tick(struct crowd *crowd)
{
    double time = tool_now();
    for (int i = 0; i < crowd->next; i++) {
        struct client *client = &crowd->clients[i];
        if (client->due > time)
            continue;
        if (client->state == AWAY)
            client_connect(crowd, client);
        else if (client->state == HELD)
            client_tick(crowd, client);
    }
}

static void crowd_tell(struct crowd *crowd)
{
    bool all = crowd->held == crowd->count;
    if (crowd->told || (!all && tool_now() < crowd->progress + crowd->patience))
        return;
    crowd->told = true;
    printf("ready %d %d\n", crowd->held, crowd->count);
    fflush(stdout);
}

static bool crowd_stopped(const struct crowd *crowd)
{
    struct signalfd_siginfo signal;
    return read(crowd->signals, &signal, sizeof(signal)) > 0 || tool_now() > crowd->end;
}

static void crowd_run(struct crowd *crowd)
{
    struct epoll_event events[EVENTS];
    crowd->progress = tool_now();
    while (!crowd_stopped(crowd)) {
        crowd_gather(crowd);
        int count = epoll_wait(crowd->events, events, EVENTS, TICK_MILLISECONDS);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            if (client)
                client_serve(crowd, client);
        }
        if (crowd->again)
            crowd_tick(crowd);
        crowd_tell(crowd);
    }
    printf("end %d %ld %ld %ld\n", crowd->held, crowd->lost, crowd->cut, crowd->refused);
}

/* ---- the command line ---- */

/* Signals are read from a descriptor. A shell makes its background commands ignore some of them. */
static void signals_open(struct crowd *crowd)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    crowd->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (crowd->signals < 0 || epoll_ctl(crowd->events, EPOLL_CTL_ADD, crowd->signals, &event) < 0)
        err(1, "signals");
}

/* Makes the bytes that each client sends first: the request, or the contents of a file. */
static void head_make(struct crowd *crowd, const char *path, const char *file)
{
    static const char request[] =
        "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n%s";
    crowd->drips = crowd->kind == SLOW && !file;
    if (!file) {
        int length = snprintf(crowd->head, sizeof(crowd->head), request, path,
                              crowd->drips ? "X-Slow: " : "\r\n");
        if (length >= (int)sizeof(crowd->head))
            errx(2, "the path is too long");
        crowd->head_bytes = (size_t)length;
        return;
    }
    FILE *stream = fopen(file, "rb");
    if (!stream)
        err(1, "%s", file);
    crowd->head_bytes = fread(crowd->head, 1, sizeof(crowd->head), stream);
    if (!feof(stream) || !crowd->head_bytes)
        errx(2, "%s is empty, or longer than %d bytes", file, HEAD_MOST - 1);
    fclose(stream);
}

static void crowd_open(struct crowd *crowd)
{
    tool_allow_connections(crowd->count);
    crowd->clients = calloc((size_t)crowd->count + 1, sizeof(*crowd->clients));
    crowd->events = epoll_create1(EPOLL_CLOEXEC);
    if (!crowd->clients || crowd->events < 0)
        err(1, "cannot make %d clients", crowd->count);
    for (int i = 0; i < crowd->count; i++)
        crowd->clients[i].socket = -1;
    signals_open(crowd);
}

static enum kind kind_of(const char *name)
{
    int kind = 0;
    while (kind < KINDS && strcmp(name, kind_names[kind]) != 0)
        kind++;
    return (enum kind)kind;
}

/* Prints the usage; returns the exit status. */
static int explain(bool wanted)
{
    fputs(usage, wanted ? stdout : stderr);
    return wanted ? 0 : 2;
}

int main(int count, char *arguments[])
{
    static const struct option table[] = {{"patience", required_argument, NULL, 'p'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"send", required_argument, NULL, 'f'},
                                          {"addresses", required_argument, NULL, 'n'},
                                          {"again", no_argument, NULL, 'a'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    static struct crowd crowd = {.patience = 2, .end = 600};
    const char *file = NULL;
    for (int option; (option = getopt_long(count, arguments, "", table, NULL)) != -1;) {
        if (option == 'p')
            crowd.patience = (double)tool_number(optarg, 1, 3600, "--patience");
        else if (option == 's')
            crowd.end = (double)tool_number(optarg, 1, 86400, "--seconds");
        else if (option == 'f')
            file = optarg;
        else if (option == 'n')
            crowd.addresses = (int)tool_number(optarg, 1, ADDRESSES_MOST, "--addresses");
        else if (option == 'a')
            crowd.again = true;
        else
            return explain(option == 'h');
    }
    char **words = arguments + optind;
    if (count - optind != 4 || (crowd.kind = kind_of(words[0])) == KINDS ||
        (crowd.kind == HOLD && !file))
        return explain(false);
    crowd.again |= crowd.kind != IDLE;
    crowd.count = (int)tool_number(words[1], 1, COUNT_MOST, "COUNT");
    crowd.server =
        (struct sockaddr_in){.sin_family = AF_INET,
                             .sin_port = htons((in_port_t)tool_number(words[2], 1, 65535, "PORT")),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    head_make(&crowd, words[3], file);
    crowd_open(&crowd);
    crowd.end += tool_now();
    crowd_run(&crowd);
    free(crowd.clients);
    return 0;
}
