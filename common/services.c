/* The registry of services: a row for each, with the functions that open and close it. */
#include "common/services.h"

#include "common/files/files.h"
#include "common/files/sized_service.h"
#include "common/files/work_service.h"
#include "common/proxy/cache_keeper.h"
#include "common/proxy/proxy_service.h"
#include "common/proxy/proxy_setup.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

union service_state {
    struct files files;
    struct sized_service sized;
    struct proxy *proxy;
};
_Static_assert(sizeof(union service_state) <= SERVICES_STATE_SIZE, "the state has no room");

static union service_state *state_of(const struct services *services)
{
    return (union service_state *)(uintptr_t)services->state;
}

struct services_row {
    const struct service *service;
    bool (*open)(struct services *services, const struct options *options,
                 const struct identity *user, bool lasting);
    bool (*start)(struct services *services, const struct options *options,
                  const struct listener *listener);
    const void *(*state)(const struct services *services);
    void (*confine)(const struct services *services, struct sandbox *sandbox);
    void (*print)(const struct options *options);
    void (*close)(struct services *services);
    void (*stay)(struct services *services);
    void (*watch)(struct services *services);
    void (*end_child)(struct services *services);
    int (*descriptors)(const struct options *options, bool lasting);
    int (*review)(const struct services *services, int64_t now, bool others);
    void (*drain)(const struct services *services);
    void (*explain)(const struct services *services, const struct options *options);
};

/* ---- files ---- */

static bool open_files(struct services *services, const struct options *options,
                       const struct identity *user, bool lasting)
{
    const struct files_settings settings = {
        .root = options->root,
        .list = options->list,
        .status = options->status,
        .cache = !options->no_file_cache,
        .lasting = lasting,
    };

    (void)user;
    return files_open(&state_of(services)->files, &settings);
}

/* The root was opened with the rights that the server was started with. */
static bool start_files(struct services *services, const struct options *options,
                        const struct listener *listener)
{
    int root = openat(state_of(services)->files.root, ".", O_PATH | O_CLOEXEC);

    (void)listener;
    if (root < 0)
        warn("the user of the server may not enter the root '%s', and clients get 403 (see --user)",
             options->root);
    else
        close(root);
    files_start(&state_of(services)->files);
    return true;
}

static const void *files_state(const struct services *services)
{
    return &state_of(services)->files;
}

static void confine_files(const struct services *services, struct sandbox *sandbox)
{
    sandbox->root = state_of(services)->files.root;
    sandbox->watches = state_of(services)->files.cache != NULL;
}

static void print_files(const struct options *options)
{
    bool ends_in_slash = options->root[strlen(options->root) - 1] == '/';

    printf("%s%s", options->root, ends_in_slash ? "" : "/");
}

static void stay_files(struct services *services)
{
    files_stay(&state_of(services)->files);
}

static void watch_files(struct services *services)
{
    files_watch(&state_of(services)->files);
}

static void close_files(struct services *services)
{
    files_close(&state_of(services)->files);
}

/* ---- sized ---- */

static bool open_sized(struct services *services, const struct options *options,
                       const struct identity *user, bool lasting)
{
    (void)user;
    (void)lasting;
    state_of(services)->sized.max_age = options->max_age;
    return true;
}

static const void *sized_state(const struct services *services)
{
    return &state_of(services)->sized;
}

static void print_sized(const struct options *options)
{
    (void)options;
    printf("documents of 100 to 20000 bytes");
}

/* ---- work ---- */

static void confine_work(const struct services *services, struct sandbox *sandbox)
{
    (void)services;
    sandbox->timers = true;
}

static void print_work(const struct options *options)
{
    (void)options;
    printf("/cpu/N, /sleep/N, /block/N and /touch/N");
}

/* ---- proxy ---- */

_Static_assert(OPTIONS_ALLOW_LIMIT == PROXY_ALLOW_LIMIT, "the proxy takes each --allow");

/* A process that serves one client asks few origins. */
#define KEPT_FOR_ONE_CLIENT 4

/* Processes that share their memory and not their open files, or these and not their memory, cannot
 * keep connections: a number would mean different connections, or nobody would close it. */
static struct origin_pool_limits pool_limits(const struct options *options, bool lasting)
{
    bool memory = options->share >= SHARE_MEMORY;
    bool files = options->share == SHARE_FILES || options->share >= SHARE_MEMORY_FILES;
    struct origin_pool_limits limits = {
        .each = options->origin_idle,
        .all = memory == files ? options->origin_idle_all : 0,
        .idle = options->origin_idle_timeout,
        .lasts = lasting || memory,
    };

    if (!limits.lasts && limits.all > KEPT_FOR_ONE_CLIENT)
        limits.all = KEPT_FOR_ONE_CLIENT;
    return limits;
}

/* The path may lead through folders that the user may not enter. */
static bool open_proxy(struct services *services, const struct options *options,
                       const struct identity *user, bool lasting)
{
    (void)lasting;
    services->cache_directory =
        options->no_cache ? -1 : cache_file_open_directory(options->cache, user->user, user->group);
    return options->no_cache || services->cache_directory >= 0;
}

static void confine_names(enum helper_process_role role, const void *argument)
{
    const struct options *options = argument;
    struct sandbox sandbox = {
        .helper = SANDBOX_NAMES, .role = role, .writable = -1, .kills = options->sandbox_kills};

    if (!options->no_sandbox)
        sandbox_enter_helper(&sandbox);
}

struct keeper_rights {
    const struct options *options;
    int directory;
    pid_t server;
};

/* The keeper may reach the same files as its supervisor. */
static void confine_keeper(enum helper_process_role role, const void *argument)
{
    const struct keeper_rights *rights = argument;
    struct sandbox sandbox = {
        .helper = SANDBOX_KEEPER,
        .role = role,
        .root = -1,
        .writable = role == HELPER_PROCESS_SUPERVISOR ? rights->directory : -1,
        .server = rights->server,
        .kills = rights->options->sandbox_kills,
    };

    if (!rights->options->no_sandbox)
        sandbox_enter_helper(&sandbox);
}

static bool start_proxy(struct services *services, const struct options *options,
                        const struct listener *listener)
{
    const struct keeper_rights keeper = {options, services->cache_directory, getpid()};
    const struct proxy_settings settings = {
        .origin = options->origin,
        .origin_tls = options->origin_tls,
        .origin_ca = options->origin_ca,
        .name_server =
            options->name_server != NULL ? text_of(options->name_server) : (struct text){0},
        .names = {confine_names, options},
        .keeper = {confine_keeper, &keeper},
        .allow = options->allow,
        .allow_count = options->allow_count,
        .cache = options->cache,
        .cache_directory = services->cache_directory,
        .cache_size = options->cache_size,
        .timeout = options->origin_timeout,
        .stale_if_error = options->stale_if_error > 0 ? options->stale_if_error / 1000 : -1,
        .body_limit = options->max_body,
        .classroom = options->classroom,
        .forwarded = (enum forwarded_fields)options->forwarded,
        .forwarded_append = options->forwarded_append,
        .pool = pool_limits(options, services->lasting),
    };

    state_of(services)->proxy = proxy_open(&settings, listener);
    return state_of(services)->proxy != NULL;
}

static const void *proxy_state(const struct services *services)
{
    return state_of(services)->proxy;
}

static void confine_proxy(const struct services *services, struct sandbox *sandbox)
{
    sandbox->connects = true;
    sandbox->port = state_of(services)->proxy->origin_port;
    if (state_of(services)->proxy->cache.shared != NULL)
        sandbox->writable = state_of(services)->proxy->cache.directory;
}

static void print_proxy(const struct options *options)
{
    const struct text *origin = &options->origin;

    if (origin->length > 0)
        printf("as a proxy for http%s://%.*s/", options->origin_tls ? "s" : "", (int)origin->length,
               origin->data);
    else
        printf("as a proxy");
}

static int proxy_descriptors(const struct options *options, bool lasting)
{
    const struct origin_pool_limits limits = pool_limits(options, lasting);
    int kept = limits.all < ORIGIN_POOL_LIMIT ? limits.all : ORIGIN_POOL_LIMIT;

    return proxy_keeps_locks(&limits) && !options->no_cache ? kept + FETCH_LOCK_FILES : kept;
}

static int review_proxy(const struct services *services, int64_t now, bool others)
{
    return origin_pool_review(state_of(services)->proxy->pool, now, others);
}

static void end_child_of_proxy(struct services *services)
{
    proxy_end_child(state_of(services)->proxy);
}

static void drain_proxy(const struct services *services)
{
    origin_pool_empty(state_of(services)->proxy->pool);
}

static void explain_proxy(const struct services *services, const struct options *options)
{
    if (!options->no_cache && cache_keeper_misses_directory(&state_of(services)->proxy->cache))
        warnx("the cache directory '%s' was deleted: a new server makes it again", options->cache);
}

static void close_proxy(struct services *services)
{
    proxy_close(state_of(services)->proxy);
}

/* ---- the registry ---- */

static const struct services_row rows[] = {
    {
        .service = &service_files,
        .open = open_files,
        .start = start_files,
        .state = files_state,
        .confine = confine_files,
        .print = print_files,
        .close = close_files,
        .stay = stay_files,
        .watch = watch_files,
        .end_child = close_files,
    },
    {
        .service = &service_sized,
        .open = open_sized,
        .state = sized_state,
        .print = print_sized,
    },
    {
        .service = &service_work,
        .confine = confine_work,
        .print = print_work,
    },
    {
        .service = &service_proxy,
        .open = open_proxy,
        .start = start_proxy,
        .state = proxy_state,
        .confine = confine_proxy,
        .print = print_proxy,
        .close = close_proxy,
        .descriptors = proxy_descriptors,
        .review = review_proxy,
        .drain = drain_proxy,
        .explain = explain_proxy,
        .end_child = end_child_of_proxy,
    },
};

#define ROWS ((int)(sizeof rows / sizeof rows[0]))

const struct service *services_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(name, rows[i].service->name) == 0)
            return rows[i].service;
    return NULL;
}

const char *services_name(int number)
{
    return number < ROWS ? rows[number].service->name : NULL;
}

static const struct services_row *row_of(const struct service *service)
{
    const struct services_row *row = rows;

    while (row->service != service)
        row++;
    return row;
}

bool services_open(struct services *services, const struct options *options,
                   const struct identity *user, bool lasting)
{
    services->row = row_of(options->service);
    services->lasting = lasting;
    return services->row->open == NULL || services->row->open(services, options, user, lasting);
}

bool services_start(struct services *services, const struct options *options,
                    const struct listener *listener)
{
    return services->row->start == NULL || services->row->start(services, options, listener);
}

int services_descriptors(const struct options *options, bool lasting)
{
    const struct services_row *row = row_of(options->service);

    return row->descriptors != NULL ? row->descriptors(options, lasting) : 0;
}

int services_review(const struct services *services, int64_t now, bool others)
{
    return services->row->review != NULL ? services->row->review(services, now, others) : -1;
}

void services_drain(const struct services *services)
{
    if (services->row->drain != NULL)
        services->row->drain(services);
}

void services_explain_upgrade(const struct services *services, const struct options *options)
{
    if (services->row->explain != NULL)
        services->row->explain(services, options);
}

const void *services_state(const struct services *services)
{
    return services->row->state != NULL ? services->row->state(services) : NULL;
}

struct sandbox services_sandbox(const struct services *services)
{
    struct sandbox sandbox = {.root = -1, .writable = -1, .domain = -1};

    if (services->row->confine != NULL)
        services->row->confine(services, &sandbox);
    return sandbox;
}

void services_print(const struct options *options)
{
    row_of(options->service)->print(options);
}

void services_close(struct services *services)
{
    if (services->row->close != NULL)
        services->row->close(services);
}

void services_stay(struct services *services)
{
    if (services->row->stay != NULL)
        services->row->stay(services);
}

void services_watch(struct services *services)
{
    if (services->row->watch != NULL)
        services->row->watch(services);
}

void services_end_child(struct services *services)
{
    if (services->row->end_child != NULL)
        services->row->end_child(services);
}
