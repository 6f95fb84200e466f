#include "common/startup.h"

#include "common/base/sandbox.h"
#include "common/files/file_cache.h"
#include "common/net/tls.h"
#include "common/net/transport_datagram.h"
#include "common/net/transport_plain.h"
#include "common/net/transport_tls.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Descriptors that are needed whatever the number of connections. */
#define DESCRIPTORS_RESERVED (16 + LISTENER_LIMIT)
/* ThreadSanitizer has one of its own, as soon as there are others. */
#ifdef __SANITIZE_THREAD__
#define SANITIZER_THREADS 1
#else
#define SANITIZER_THREADS 0
#endif

static bool open_tls(struct server *server)
{
    const struct options *options = &server->options;

    server->context.transport = options->tls   ? &transport_tls
                                : options->udp ? &transport_datagram
                                               : &transport_plain;
    server->context.scheme = options->tls ? SCHEME_HTTPS : SCHEME_HTTP;
    if (!options->tls) {
        tls_forgo();
        return true;
    }
    server->context.tls = tls_open(options->certificate, options->key);
    return server->context.tls != NULL;
}

/* Opens a file to write to; "-" is standard output, no name none. */
static bool open_output(const char *name, int flags, int *file)
{
    *file = -1;
    if (name == NULL)
        return true;
    *file = strcmp(name, "-") == 0 ? STDOUT_FILENO
                                   : open(name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    if (*file < 0)
        warn("cannot open '%s'", name);
    return *file >= 0;
}

bool startup_workers_wait(const struct server *server)
{
    return server->options.workers > 0 && server->model->max_connections == 0 &&
           server->options.accept != ACCEPT_PASS && server->options.accept != ACCEPT_QUEUE;
}

/* How many descriptors of this process each connection needs; 0: none that lasts. */
static unsigned descriptors_each(const struct server *server)
{
    const struct options *options = &server->options;
    int each = server->model->descriptors;

    if (each == 0)
        return 0;
    each += options->service->descriptors;
    if (startup_workers_wait(server))
        each++; /* what its worker waits at; and that worker's listener: */
    if (startup_workers_wait(server) && options->accept == ACCEPT_REUSEPORT)
        each += (options->bind_count > 0 ? options->bind_count : 2) * (options->udp ? 2 : 1);
    return (unsigned)each;
}

static void raise_descriptors(struct server *server)
{
    uint64_t wanted = (uint64_t)server->options.max_connections, possible;
    unsigned reserved = DESCRIPTORS_RESERVED + (server->options.udp ? LISTENER_LIMIT : 0);
    unsigned each = descriptors_each(server);
    struct rlimit limit;

    server->limit = wanted;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        getrlimit(RLIMIT_NOFILE, &limit);
    if (each == 0)
        return;
    possible = limit.rlim_cur > reserved ? (limit.rlim_cur - reserved) / each : 0;
    if (possible == 0)
        possible = 1;
    if (possible >= wanted)
        return;
    server->limit = possible;
    if (startup_workers_wait(server)) /* each of them takes a connection whenever there is one */
        server->options.workers = (int)possible;
    warnx("a limit of %llu descriptors allows %llu connections at once, not %llu",
          (unsigned long long)limit.rlim_cur, (unsigned long long)possible,
          (unsigned long long)wanted);
}

/* There is one at first. */
static bool open_duties(struct server *server)
{
    server->duties = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
    atomic_store(&server->board->duties, 1);
    return server->duties >= 0;
}

static bool open_signals(struct server *server)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    if (server->model->supervises)
        sigaddset(&set, SIGCHLD);
    if (server->options.tls) {
        sigaddset(&set, SIGHUP);
        signal(SIGHUP, SIG_DFL); /* whoever started this may ignore it */
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log that has grown too long fails, and does not kill */
    signal(SIGCHLD, SIG_DFL); /* whoever started this may ignore it, and lose the children's ends */
    sigprocmask(SIG_BLOCK, &set, NULL);
    server->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    server->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server->left = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server->duties = -1;
    server->board = scoreboard_make(server->options.workers > 0 ? server->options.workers : 1);
    if (server->signals >= 0 && server->stop >= 0 && server->left >= 0 && server->board != NULL &&
        (server->options.accept != ACCEPT_FEW || open_duties(server)))
        return true;
    warn("cannot make ready");
    return false;
}

static void fill_context(struct server *server)
{
    const struct options *options = &server->options;

    server->context.service = options->service;
    server->context.protocol = options->protocol;
    server->context.state = services_state(&server->services);
    server->context.request_timeout = options->request_timeout;
    server->context.idle_timeout = options->idle_timeout;
    server->context.write_timeout = options->write_timeout;
    server->context.board = server->board;
}

static bool open_twin(struct server *server, struct listener *twin)
{
    return listener_twin(twin, &server->listener, server->options.backlog) &&
           (!startup_workers_wait(server) || listener_share(twin));
}

/* Where each worker of a crew has a listener, the first one has that of the server. */
static bool open_twins(struct server *server)
{
    int twins = server->options.accept == ACCEPT_REUSEPORT ? server->options.workers - 1 : 0;
    bool good = !startup_workers_wait(server) || listener_share(&server->listener);

    if (twins > 0)
        server->twins = calloc((size_t)twins, sizeof *server->twins);
    while (good && server->twin_count < twins)
        good = server->twins != NULL && open_twin(server, &server->twins[server->twin_count++]);
    if (!good)
        warn("cannot make a listener for each of %d workers", server->options.workers);
    return good;
}

bool startup_make_ready(struct server *server)
{
    const struct options *options = &server->options;

    raise_descriptors(server);
    if (!services_open(&server->services, options, server->model->lasting) || !open_tls(server) ||
        !open_output(options->log, O_APPEND, &server->context.log) ||
        !open_output(options->stats, 0, &server->stats) || !open_signals(server) ||
        !listener_open(&server->listener, options->bind, options->bind_count, options->port,
                       options->backlog, options->accept == ACCEPT_REUSEPORT, options->udp) ||
        !open_twins(server))
        return false;
    if (options->user != NULL && !sandbox_become(options->user))
        return false;
    if (!services_start(&server->services, options, &server->listener))
        return false;
    server->status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    server->threads = server_number(server, "Threads:") + SANITIZER_THREADS;
    if (!options->no_sandbox) {
        const struct sandbox sandbox = services_sandbox(&server->services);
        sandbox_enter(&sandbox);
    }
    fill_context(server);
    return true;
}

void startup_fill_standard_descriptors(void)
{
    int file;

    while ((file = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && file <= STDERR_FILENO)
        ;
    if (file >= 0)
        close(file);
}
