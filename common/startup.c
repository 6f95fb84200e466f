/* Starts a server: opens all that it needs, in the order of rights, and enters the sandbox. */
#include "common/startup.h"

#include "common/acceptor.h"
#include "common/base/ballast.h"
#include "common/base/oom_guard.h"
#include "common/base/proc_status.h"
#include "common/base/service_manager.h"
#include "common/base/uring.h"
#include "common/connection_room.h"
#include "common/net/key_reader.h"
#include "common/net/listener_open.h"
#include "common/net/tls.h"
#include "common/net/transport_datagram.h"
#include "common/net/transport_plain.h"
#include "common/net/transport_tls.h"
#include "common/sandbox/sandbox.h"
#include "common/signals.h"
#include "common/trace_file.h"
#include "common/upgrade.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors that are open whatever the number of connections. */
#define DESCRIPTORS_RESERVED (16 + LISTENER_LIMIT)
/* ThreadSanitizer has a thread of its own. */
#ifdef __SANITIZE_THREAD__
#define SANITIZER_THREADS 1
#else
#define SANITIZER_THREADS 0
#endif

static void confine(enum sandbox_helper helper, enum helper_process_role role,
                    const struct options *options)
{
    struct sandbox sandbox = {
        .helper = helper, .role = role, .writable = -1, .kills = options->sandbox_kills};

    if (!options->no_sandbox)
        sandbox_enter_helper(&sandbox);
}

static void confine_key_process(enum helper_process_role role, const void *options)
{
    confine(SANDBOX_SIGNER, role, options);
}

static void confine_log_opener(enum helper_process_role role, const void *options)
{
    confine(SANDBOX_LOG_OPENER, role, options);
}

static bool open_tls(struct server *server)
{
    const struct options *options = &server->options;
    const struct key_files files = {
        .paths = {options->certificate, options->key},
        .confinement = {confine_key_process, options},
        .workers = server->model->served_by == BY_WORKER_PROCESS ? options->workers : 0,
    };

    server->context.transport = options->tls   ? &transport_tls
                                : options->udp ? &transport_datagram
                                               : &transport_plain;
    server->context.scheme = options->tls ? SCHEME_HTTPS : SCHEME_HTTP;
    if (!options->tls && !options->origin_tls)
        tls_forgo();
    if (!options->tls)
        return true;
    server->context.tls = tls_open(&files, options->key_process);
    return server->context.tls != NULL;
}

static bool open_log(struct server *server)
{
    const struct helper_process_confinement confinement = {confine_log_opener, &server->options};

    if (server->options.log == NULL)
        return true;
    server->context.log = &server->log;
    return access_log_open(&server->log, server->options.log, &confinement);
}

static bool open_stats(struct server *server)
{
    server->stats =
        server->options.stats != NULL ? access_log_open_file(server->options.stats, 0) : -1;
    return server->options.stats == NULL || server->stats >= 0;
}

bool startup_workers_accept(const struct server *server)
{
    return server->options.workers > 0 && server->model->max_connections == 0 &&
           server->options.accept != ACCEPT_PASS && server->options.accept != ACCEPT_QUEUE;
}

/* Returns how many descriptors of this process each connection needs while it lasts. A worker that
 * accepts itself has one that it waits at, and may have listeners. */
static unsigned descriptors_each(const struct server *server)
{
    const struct options *options = &server->options;
    int each = server->model->descriptors;

    if (each == 0)
        return 0;
    each += options->service->descriptors;
    if (startup_workers_accept(server))
        each++;
    if (startup_workers_accept(server) && options->accept == ACCEPT_REUSEPORT)
        each += (options->bind_count > 0 ? options->bind_count : 2) * (options->udp ? 2 : 1);
    return (unsigned)each;
}

static void raise_descriptors(struct server *server)
{
    uint64_t wanted = (uint64_t)server->options.max_connections, possible;
    int kept = services_descriptors(&server->options, model_lasts(server->model));
    unsigned reserved =
        (unsigned)(DESCRIPTORS_RESERVED + (server->options.udp ? LISTENER_LIMIT : 0) + kept);
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
    if (startup_workers_accept(server)) /* each worker accepts, whatever the limit */
        server->options.workers = (int)possible;
    warnx("a limit of %llu descriptors allows %llu connections at once, not %llu",
          (unsigned long long)limit.rlim_cur, (unsigned long long)possible,
          (unsigned long long)wanted);
}

/* By default one address may have half of the seats, which leaves some to others. Loopback has no
 * limit: a client on this machine can do worse than take seats. All datagrams have an eighth: one
 * client can send them from as many addresses as it likes. */
#define LEAST_PER_ADDRESS  64
#define SHARE_OF_DATAGRAMS 8
static struct address_limit limit_of_addresses(const struct server *server)
{
    const struct options *options = &server->options;
    struct address_limit limit = {.rate = options->rate_per_address};

    limit.most = limit.most_loopback = options->max_per_address;
    if (limit.most == 0)
        limit.most =
            server->limit / 2 > LEAST_PER_ADDRESS ? (int)server->limit / 2 : LEAST_PER_ADDRESS;
    if (limit.most_loopback == 0 && limit.rate > 0)
        limit.most_loopback = INT_MAX;
    if (server->limit > LEAST_PER_ADDRESS)
        limit.most_datagrams = (int)server->limit / SHARE_OF_DATAGRAMS;
    return limit;
}

/* Makes what processes and threads share: the counters, and for event loops one permit to listen.
 */
static bool open_shared(struct server *server)
{
    const struct address_limit limit = limit_of_addresses(server);
    const struct scoreboard_room room = {
        .scratches =
            server->options.trace != NULL ? TRACE_SCRATCHES * sizeof(struct trace_scratch) : 0,
        .limits = address_limit_size(server->limit),
        .trace = trace_file_memory(server),
    };
    bool permits = server->options.accept == ACCEPT_FEW;

    server->parts = scoreboard_make(server->options.workers > 0 ? server->options.workers : 1,
                                    (int)server->limit, room);
    server->board = server->parts.board;
    server->permits = permits ? eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE) : -1;
    server->pressure = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (server->board == NULL || (permits && server->permits < 0) || server->pressure < 0 ||
        !seats_open(&server->seats, &server->parts, &limit) ||
        (!model_makes_processes(server->model) && !seats_open_notes(&server->seats)))
        return false;
    atomic_store(&server->board->permits, permits);
    return true;
}

static bool open_internals(struct server *server)
{
    if (signals_open(server) && open_shared(server))
        return true;
    warn("cannot prepare the server");
    return false;
}

static void fill_context(struct server *server)
{
    const struct options *options = &server->options;

    server->context.server = server->model->name;
    server->context.service = options->service;
    server->context.protocol = options->protocol;
    server->context.state = services_state(&server->services);
    server->context.request_timeout = options->request_timeout;
    server->context.idle_timeout = options->idle_timeout;
    server->context.write_timeout = options->write_timeout;
    server->context.board = server->board;
    server->context.slot_count = server->parts.slot_count;
}

static bool prepare(const struct server *server, struct listener *listener)
{
    return (!server->model->defers || listener_defer(listener)) &&
           (!startup_workers_accept(server) || listener_share(listener));
}

static bool open_twin(struct server *server, struct listener *twin)
{
    return listener_twin(twin, &server->listener, server->options.backlog) && prepare(server, twin);
}

/* Makes a listener for each worker but the first, which has that of the server. */
static bool open_twins(struct server *server)
{
    int twins = server->options.accept == ACCEPT_REUSEPORT ? server->options.workers - 1 : 0;
    bool good = prepare(server, &server->listener);

    if (twins > 0)
        server->twins = calloc((size_t)twins, sizeof *server->twins);
    while (good && server->twin_count < twins)
        good = server->twins != NULL && open_twin(server, &server->twins[server->twin_count++]);
    if (!good)
        warn("cannot make a listener for each of %d workers", server->options.workers);
    return good;
}

static bool inherit_listeners(struct server *server)
{
    const struct listener_handover *given = &server->upgrade.given;
    bool good = listener_handover_get(given, 0, &server->listener);

    if (given->listeners > 1)
        server->twins = calloc((size_t)given->listeners - 1, sizeof *server->twins);
    for (int i = 1; good && i < given->listeners; i++)
        good = server->twins != NULL &&
               listener_handover_get(given, i, &server->twins[server->twin_count++]);
    return good;
}

static bool open_listeners(struct server *server)
{
    const struct options *options = &server->options;
    struct listener *listener = &server->listener;
    bool twins = options->accept == ACCEPT_REUSEPORT;
    int given = service_manager_sockets();

    server->service_manager = service_manager_open();
    if (server->upgrade.given.listeners > 0)
        return inherit_listeners(server);
    if (given > 0 ? !listener_adopt(listener, SERVICE_MANAGER_FIRST, given, twins, options->udp)
                  : !listener_open(listener, options->bind, options->bind_count, options->port,
                                   options->backlog, twins, options->udp))
        return false;
    return open_twins(server);
}

/* With --accept reuseport each worker has one of the listeners that were passed. */
static bool open_upgrade(struct server *server, char **argv)
{
    int given;

    if (!upgrade_open(server, argv)) {
        warn("cannot prepare upgrades");
        return false;
    }
    given = server->upgrade.given.listeners;
    if (server->options.accept == ACCEPT_REUSEPORT && given > 0)
        server->options.workers = given;
    return true;
}

static bool pass_listeners(struct server *server)
{
    bool good = upgrade_pass(server);

    if (!good)
        warn("cannot prepare upgrades");
    return good;
}

/* Where memory is limited: a model that makes a process or thread for each connection takes no more
 * connections than there is memory for, and the kernel ends children before the server. */
static void watch_memory(struct server *server)
{
    const struct model *model = server->model;
    uint64_t many = connection_room(&server->options, model) / 4;

    server->memory.oom_guard = -1;
    if (model->served_by == BY_MAIN || memory_limit() == UINT64_MAX)
        return;
    if (model_makes_for_each(model) && many < server->limit) {
        server->memory.tight_from = many > 0 ? (int64_t)many : 1;
        memory_gauge_open(&server->memory.gauge);
    }
    if (!model_makes_processes(model) ||
        (model->served_by == BY_CHILD && server->memory.tight_from == 0))
        return;
    server->memory.oom_guard = oom_guard_open();
    if (server->memory.oom_guard < 0)
        warn("cannot protect the server when memory runs out");
}

/* Opens what needs the rights that the server was started with. */
static bool open_privileged(struct server *server, char **argv)
{
    const struct options *options = &server->options;

    watch_memory(server);
    return services_open(&server->services, options, &server->identity,
                         model_lasts(server->model)) &&
           open_tls(server) && open_internals(server) && open_log(server) && open_stats(server) &&
           trace_file_open(server, argv) && open_listeners(server) && pass_listeners(server);
}

static void enter_sandbox(struct server *server)
{
    struct sandbox *sandbox = &server->sandbox;

    *sandbox = services_sandbox(&server->services);
    sandbox->datagrams = server->options.udp;
    sandbox->log = server->options.log != NULL;
    sandbox->reports = server->options.stats != NULL || server->options.trace != NULL;
    sandbox->key_process = server->options.tls && server->options.key_process;
    sandbox->served_by = server->model->served_by;
    /* A process of several threads could not rely on it; one for a connection watches nothing. */
    if (model_makes_threads(server->model) || !model_lasts(server->model))
        sandbox->watches = false;
    sandbox->clones = server->model->shares || server->options.template;
    sandbox->rings = server->model->rings;
    sandbox->template = server->options.template;
    sandbox->kills = server->options.sandbox_kills;
    sandbox_enter(sandbox);
}

/* The helper processes have been made: they need no copy of it. */
static bool take_ballast(struct server *server)
{
    const struct options *options = &server->options;

    if (options->ballast > 0)
        server->memory.ballast = ballast_take(options->ballast, options->ballast_huge);
    if (options->ballast == 0 || server->memory.ballast != NULL)
        return true;
    warn("cannot have a ballast of %" PRIu64 " bytes%s", options->ballast,
         options->ballast_huge ? " in huge pages" : "");
    return false;
}

/* Rings count as locked memory, of all processes of the user together. */
static void raise_locked_memory(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
}

/* Asked as the user of the server, whose workers make the rings: root may have more rights. */
static bool has_rings(const struct model *model, int workers)
{
    if (!model->rings || uring_is_possible(workers))
        return true;
    if (errno == ENOMEM)
        warn("cannot make a ring for each worker within the limit of locked memory (ulimit -l)");
    else if (errno == EINVAL || errno == ENOSYS)
        warnx("this kernel has no io_uring, or one that is too old: Linux 6.1 has what %s needs",
              model->name);
    else
        warn("cannot use io_uring, which the sysctl kernel.io_uring_disabled or the filter of a "
             "container may forbid");
    return false;
}

bool startup_prepare(struct server *server, char **argv)
{
    const struct options *options = &server->options;

    if (server->model->rings)
        raise_locked_memory();
    if (!ballast_is_possible(options->ballast)) {
        warnx("cannot have a ballast of %" PRIu64 " bytes: there is less memory", options->ballast);
        return false;
    }
    raise_descriptors(server);
    if (!open_upgrade(server, argv) || !identity_find(&server->identity, options->user) ||
        !open_privileged(server, argv) || !identity_take(&server->identity) ||
        !has_rings(server->model, options->workers))
        return false;
    if (!services_start(&server->services, options, &server->listener) || !take_ballast(server))
        return false;
    server->memory.status = proc_status_open();
    server->threads = proc_status_number(server->memory.status, "Threads:") + SANITIZER_THREADS;
    server->memory.returns.threads = server->model->served_by == BY_THREAD;
    if (server->model->served_by == BY_MAIN)
        services_watch(&server->services);
    if (!options->no_sandbox)
        enter_sandbox(server);
    fill_context(server);
    if (acceptor_open(server))
        return true;
    warn("cannot prepare the server");
    return false;
}

void startup_fill_standard_descriptors(void)
{
    int file;

    while ((file = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && file <= STDERR_FILENO)
        ;
    if (file >= 0)
        close(file);
}
