/* floor: a bare server that others are measured against: a concurrency model without a handler.
 *
 * usage:    floor fork|thread|one [OPTION]... PORT BYTES
 * example:  collect/clients/floor thread 0 1000
 *
 * It accepts, hands over, reads once, writes a constant response with a body of BYTES, and closes.
 * A real server costs more, by its handler. PORT 0 takes a free port; the ready line names
 * it. SIGTERM and SIGINT end the program with status 0.
 *
 * The options are mistakes that classroom servers make: the study `mistakes` measures each of them
 * alone. None of them touches the plain path: the function that answers a connection is chosen
 * once, at the start.
 */
#include "tool.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK_BYTES = 64 * 1024,
    REQUEST_BYTES = 4096,
    HEAD_BYTES = 256,
    BODY_MOST = 64 * 1024 * 1024,
    /* Two mappings a thread: half of the kernel's usual vm.max_map_count, and 1 GiB of address
       space at most. */
    JOINABLE_MOST = 16000
};

struct response {
    char *bytes;
    size_t head;
    size_t total;
};

static struct response response;
static void (*answer)(int connection);
static useconds_t work;
static int joinable_left;

static const char usage[] =
    "usage: floor fork|thread|one [OPTION]... PORT BYTES\n"
    "A bare server: every request is answered with BYTES of x, with no handler at all.\n"
    "  fork             one process per connection\n"
    "  thread           one detached thread with a stack of 64 KiB per connection\n"
    "  one              one connection at a time\n"
    "  --backlog N      the listen queue (4096)\n"
    "  --keep-alive     answer until the client closes\n"
    "mistakes, for study:\n"
    "  --split-writes   head and body in two writes, Nagle's algorithm on; implies --keep-alive\n"
    "  --joinable       threads are neither detached nor joined: their stacks stay. After 16000\n"
    "                   of them connections are closed unanswered, as if none could be made\n"
    "  --work US        sleep for US microseconds before each response, as a slow handler "
    "would\n";

static void answer_once(int connection)
{
    char request[REQUEST_BYTES];
    if (read(connection, request, sizeof(request)) > 0 &&
        write(connection, response.bytes, response.total) < 0) {
        /* The client has gone. */
    }
    close(connection);
}

static int write_all(int connection, const char *bytes, size_t left)
{
    while (left > 0) {
        ssize_t written = write(connection, bytes, left);
        if (written <= 0)
            return -1;
        bytes += written;
        left -= (size_t)written;
    }
    return 0;
}

static void answer_many(int connection)
{
    char request[REQUEST_BYTES];
    while (read(connection, request, sizeof(request)) > 0) {
        if (work)
            usleep(work);
        if (write_all(connection, response.bytes, response.total) < 0)
            break;
    }
    close(connection);
}

static void answer_split(int connection)
{
    char request[REQUEST_BYTES];
    while (read(connection, request, sizeof(request)) > 0) {
        if (work)
            usleep(work);
        if (write_all(connection, response.bytes, response.head) < 0 ||
            write_all(connection, response.bytes + response.head, response.total - response.head) <
                0)
            break;
    }
    close(connection);
}

static void answer_slowly(int connection)
{
    usleep(work);
    answer_once(connection);
}

static void *run_thread(void *argument)
{
    answer((int)(long)argument);
    return NULL;
}

static void hand_to_thread(int connection, const pthread_attr_t *attributes)
{
    pthread_t thread;
    if (pthread_create(&thread, attributes, run_thread, (void *)(long)connection) != 0)
        close(connection);
}

static int accept_next(int listener)
{
    int connection;
    while ((connection = accept(listener, NULL, NULL)) < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        else if (errno != EINTR && errno != ECONNABORTED)
            err(1, "accept");
    }
    return connection;
}

__attribute__((noreturn)) static void serve_fork(int listener)
{
    for (;;) {
        int connection = accept_next(listener);
        if (fork() == 0) {
            answer(connection);
            _exit(0);
        }
        close(connection);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

__attribute__((noreturn)) static void serve_thread(int listener)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (;;)
        hand_to_thread(accept_next(listener), &attributes);
}

__attribute__((noreturn)) static void serve_joinable(int listener)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (;;) {
        int connection = accept_next(listener);
        if (joinable_left > 0) {
            hand_to_thread(connection, &attributes);
            if (--joinable_left == 0)
                fprintf(stderr, "floor: %d threads were never joined: no further one is made\n",
                        JOINABLE_MOST);
        } else {
            close(connection);
        }
    }
}

__attribute__((noreturn)) static void serve_one(int listener)
{
    for (;;)
        answer(accept_next(listener));
}

static void make_reply(size_t body, bool keep)
{
    response.bytes = malloc(HEAD_BYTES + body);
    if (!response.bytes)
        errx(1, "no memory for %zu bytes", body);
    int head = snprintf(response.bytes, HEAD_BYTES,
                        "HTTP/1.1 200 OK\r\nServer: floor\r\nContent-Type: text/plain\r\n"
                        "Content-Length: %zu\r\nConnection: %s\r\n\r\n",
                        body, keep ? "keep-alive" : "close");
    response.head = (size_t)head;
    response.total = response.head + body;
    memset(response.bytes + response.head, 'x', body);
}

static int listen_on(in_port_t port, int backlog, in_port_t *bound)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 ||
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, backlog) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        err(1, "port %d", port);
    *bound = ntohs(address.sin_port);
    return listener;
}

static void stop(int number_of_signal)
{
    (void)number_of_signal;
    _exit(0);
}

struct choice {
    const char *model;
    void (*serve)(int listener);
};

static const struct choice choices[] = {
    {"fork", serve_fork}, {"thread", serve_thread}, {"one", serve_one}};

static void (*model_named(const char *name))(int)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
        if (!strcmp(choices[i].model, name))
            return choices[i].serve;
    errx(2, "there is no model '%s': fork, thread or one", name);
}

struct settings {
    int backlog;
    bool keep, split, joinable;
};

/* Reads the options; a wrong one ends the program. */
static struct settings options_take(int count, char *arguments[])
{
    enum { BACKLOG = 256, KEEP, SPLIT, JOINABLE, WORK, HELP };
    static const struct option options[] = {{"backlog", required_argument, NULL, BACKLOG},
                                            {"keep-alive", no_argument, NULL, KEEP},
                                            {"split-writes", no_argument, NULL, SPLIT},
                                            {"joinable", no_argument, NULL, JOINABLE},
                                            {"work", required_argument, NULL, WORK},
                                            {"help", no_argument, NULL, HELP},
                                            {NULL, 0, NULL, 0}};
    struct settings settings = {.backlog = 4096};
    for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;) {
        switch (option) {
        case BACKLOG:
            settings.backlog = (int)tool_number(optarg, 0, 65535, "--backlog");
            break;
        case KEEP:
            settings.keep = true;
            break;
        case SPLIT:
            settings.keep = settings.split = true;
            break;
        case JOINABLE:
            settings.joinable = true;
            break;
        case WORK:
            work = (useconds_t)tool_number(optarg, 0, 999999, "--work");
            break;
        case HELP:
            fputs(usage, stdout);
            exit(0);
        default:
            exit(2);
        }
    }
    return settings;
}

static void (*answer_for(const struct settings *settings))(int)
{
    if (settings->split)
        return answer_split;
    if (settings->keep)
        return answer_many;
    return work ? answer_slowly : answer_once;
}

int main(int count, char *arguments[])
{
    struct settings settings = options_take(count, arguments);
    if (count - optind != 3) {
        fputs(usage, stderr);
        return 2;
    }
    const char *model = arguments[optind];
    void (*serve)(int) = model_named(model);
    if (settings.joinable && serve != serve_thread)
        errx(2, "--joinable is for the model thread");
    if (settings.joinable) {
        joinable_left = JOINABLE_MOST;
        serve = serve_joinable;
    }
    in_port_t bound, port = (in_port_t)tool_number(arguments[optind + 1], 0, 65535, "PORT");
    make_reply((size_t)tool_number(arguments[optind + 2], 0, BODY_MOST, "BYTES"), settings.keep);
    answer = answer_for(&settings);

    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    int listener = listen_on(port, settings.backlog, &bound);
    printf("floor: http://127.0.0.1:%d/ answers %zu bytes, model %s%s%s\n", bound,
           response.total - response.head, model, settings.split ? ", split writes" : "",
           settings.joinable ? ", threads never joined" : "");
    fflush(stdout);
    serve(listener);
}
