/* Opens the proxy, and decides which addresses it may connect to. */
#include "common/proxy/proxy_setup.h"

#include "common/net/tls_client.h"
#include "common/proxy/cache_keeper.h"
#include "common/proxy/cache_memory.h"

#include <err.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOSTS_FILE   "/etc/hosts"
#define SERVERS_FILE "/etc/resolv.conf"
#define HOSTS_LIMIT  (64 * 1024)
/* Freed memory that a process keeps, so that not every request has to ask the kernel for its own:
 * enough for a hundred fetches. When few connections are left, memory_return.h gives it back. */
#define SPARE_BYTES (16 * 1024 * 1024)
/* Larger pieces go back to it at once. */
#define LARGE_BYTES (256 * 1024)

/* Names behind the limit are not known. Mapped, not allocated: child processes inherit it, and
 * would have to free memory of malloc. */
static void read_hosts(struct proxy *proxy)
{
    int file = open(HOSTS_FILE, O_RDONLY | O_CLOEXEC);
    void *memory =
        mmap(NULL, HOSTS_LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ssize_t count;

    if (memory != MAP_FAILED) {
        proxy->hosts = memory;
        while (file >= 0 && proxy->hosts_length < HOSTS_LIMIT - 1 &&
               (count = read(file, proxy->hosts + proxy->hosts_length,
                             HOSTS_LIMIT - 1 - proxy->hosts_length)) > 0)
            proxy->hosts_length += (size_t)count;
        proxy->hosts[proxy->hosts_length++] = '\n'; /* the last line may lack it */
    }
    if (file >= 0)
        close(file);
}

bool proxy_find_addresses(const struct proxy *proxy, struct text host, uint16_t port,
                          struct address_list *addresses)
{
    return address_find(addresses, (struct text){proxy->hosts, proxy->hosts_length}, host, port);
}

bool proxy_find_origin(const struct proxy *proxy, struct text host, uint16_t port, int64_t now,
                       struct address_list *addresses)
{
    return proxy->names != NULL ? name_lookup_find(proxy->names, now, addresses)
                                : proxy_find_addresses(proxy, host, port, addresses);
}

static bool look_up(const struct proxy *proxy, const char *option, struct text authority,
                    uint16_t default_port, struct address_list *destination)
{
    struct text host;
    uint16_t port;

    if (address_split(authority, default_port, &host, &port) &&
        proxy_find_addresses(proxy, host, port, destination))
        return true;
    warnx("%s '%.*s' is no HOST:PORT that is known here: a numeric address, localhost, or a name "
          "in " HOSTS_FILE,
          option, (int)authority.length, authority.data);
    return false;
}

static bool is_listed(const struct proxy *proxy, const union address *address)
{
    for (int i = 0; i < proxy->allowed_count; i++)
        if (address_same(&proxy->allowed[i], address))
            return true;
    return false;
}

static bool allow(struct proxy *proxy, const char *option, struct text authority, uint16_t port)
{
    struct address_list destination;

    if (text_equal(authority, TEXT("loopback"))) {
        proxy->loopback_for_all = true;
        return true;
    }
    if (!look_up(proxy, option, authority, port, &destination))
        return false;
    for (int i = 0; i < destination.count; i++)
        proxy->allowed[proxy->allowed_count++] = destination.addresses[i];
    return true;
}

/* Chooses a name that tells this proxy's Via from that of another one. */
static void choose_name(struct proxy *proxy)
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint64_t)clock_now().milliseconds;
    snprintf(proxy->name, sizeof proxy->name, "fork-vs-thread-%08x", (unsigned)number);
}

static void find_own_addresses(struct proxy *proxy, const struct listener *listener)
{
    for (int i = 0; i < listener->streams; i++) {
        union address *own = &proxy->own[proxy->own_count];
        socklen_t size = sizeof *own;
        if (getsockname(listener->sockets[i], &own->any, &size) != 0)
            continue;
        proxy->own_count++;
        proxy->serves_others |= !address_is_loopback(own);
    }
}

/* Loopback services trust whoever can reach them: other machines must not, through the proxy,
 * unless that is meant. */
static bool is_meant(const struct proxy *proxy, const struct proxy_settings *settings)
{
    if (!proxy->serves_others || proxy->origin.length > 0 || settings->allow_count > 0)
        return true;
    warnx(
        "clients of other machines can reach this forward proxy: name the addresses that they may "
        "reach by --allow HOST:PORT, or open all services of this machine's loopback addresses "
        "to them by --allow loopback");
    return false;
}

uint16_t proxy_default_port(const struct proxy *proxy)
{
    return proxy->tls != NULL ? 443 : 80;
}

static bool open_tls(struct proxy *proxy, const struct proxy_settings *settings)
{
    struct text host = {0};
    uint16_t port;

    if (!settings->origin_tls)
        return true;
    address_split(proxy->origin, 443, &host, &port);
    proxy->tls = tls_client_open(settings->origin_ca, host);
    return proxy->tls != NULL;
}

static bool choose_name_servers(const struct proxy_settings *settings,
                                struct name_lookup_settings *lookup)
{
    struct text host;
    uint16_t port;

    if (settings->name_server.length == 0) {
        name_lookup_read_servers(SERVERS_FILE, lookup);
        return true;
    }
    lookup->server_count = 1;
    if (address_split(settings->name_server, 53, &host, &port) &&
        address_read(host, port, &lookup->servers[0]))
        return true;
    warnx("--name-server '%.*s' is no numeric address", (int)settings->name_server.length,
          settings->name_server.data);
    return false;
}

/* A name that leads to public addresses at the start must not lead into a private network later,
 * and no name may lead to this machine: whoever answers for the name would choose which service is
 * asked. */
static bool limit_scope(struct proxy *proxy, struct text host)
{
    struct address_list list = {.count = 0};
    bool usable = false;

    name_lookup_find(proxy->names, clock_now().milliseconds, &list);
    for (int i = 0; i < list.count; i++) {
        enum address_scope scope = address_scope(&list.addresses[i]);
        if (scope == ADDRESS_PRIVATE)
            proxy->scope = scope;
        usable |= scope < ADDRESS_LOCAL || is_listed(proxy, &list.addresses[i]);
    }
    if (!usable)
        warnx("the name '%.*s' leads to this machine or its link: --allow must name the address "
              "if that is meant",
              (int)host.length, host.data);
    return usable;
}

/* A name that is not in the hosts file is looked up, now and later. */
static bool open_names(struct proxy *proxy, const struct proxy_settings *settings)
{
    struct name_lookup_settings lookup = {
        .confinement = settings->names,
    };

    address_split(proxy->origin, proxy_default_port(proxy), &lookup.name, &lookup.port);
    proxy->origin_port = lookup.port;
    if (!choose_name_servers(settings, &lookup))
        return false;
    proxy->names = name_lookup_open(&lookup);
    return proxy->names != NULL && limit_scope(proxy, lookup.name);
}

static bool allow_origin(struct proxy *proxy, const struct proxy_settings *settings)
{
    struct address_list list;
    struct text host = {0};
    uint16_t port = 0;

    if (proxy->origin.length == 0)
        return true;
    address_split(proxy->origin, proxy_default_port(proxy), &host, &port);
    if (!proxy_find_addresses(proxy, host, port, &list))
        return open_names(proxy, settings);
    proxy->origin_port = port;
    return allow(proxy, "--origin", proxy->origin, port);
}

bool proxy_keeps_locks(const struct origin_pool_limits *limits)
{
    return limits->lasts && limits->all > 0;
}

static bool open_cache(struct proxy *proxy, const struct proxy_settings *settings)
{
    if (!cache_open_directory(&proxy->cache, settings->cache_directory, settings->cache,
                              settings->cache_size) ||
        !cache_keeper_open(&proxy->cache, &settings->keeper))
        return false;
    if (settings->pool.lasts)
        cache_memory_open(&proxy->cache);
    if (proxy_keeps_locks(&settings->pool))
        fetch_lock_open_files(&proxy->cache);
    return true;
}

static bool open_all(struct proxy *proxy, const struct proxy_settings *settings)
{
    if (!open_tls(proxy, settings))
        return false;
    for (int i = 0; i < settings->allow_count; i++)
        if (!allow(proxy, "--allow", text_of(settings->allow[i]), 0))
            return false;
    if (!allow_origin(proxy, settings))
        return false;
    if (settings->cache_directory >= 0 && !open_cache(proxy, settings))
        return false;
    proxy->cache.gateway = proxy->origin.length > 0;
    return true;
}

struct proxy *proxy_open(const struct proxy_settings *settings, const struct listener *listener)
{
    struct proxy *proxy =
        mmap(NULL, sizeof *proxy, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (proxy == MAP_FAILED) {
        warn("cannot prepare the proxy");
        return NULL;
    }
    *proxy = (struct proxy){
        .origin = settings->origin,
        .timeout = settings->timeout,
        .stale_if_error = settings->stale_if_error,
        .body_limit = settings->body_limit,
        .classroom = settings->classroom,
        .forwarded = settings->forwarded,
        .forwarded_append = settings->forwarded_append,
        .cache.directory = -1,
    };
    mallopt(M_TRIM_THRESHOLD, SPARE_BYTES);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    read_hosts(proxy);
    choose_name(proxy);
    find_own_addresses(proxy, listener);
    proxy->pool = origin_pool_open(&settings->pool);
    if (proxy->pool == NULL)
        warn("cannot prepare the connections to origins");
    else if (is_meant(proxy, settings) && open_all(proxy, settings))
        return proxy;
    proxy_close(proxy);
    return NULL;
}

void proxy_end_child(struct proxy *proxy)
{
    cache_memory_close(&proxy->cache);
}

void proxy_close(struct proxy *proxy)
{
    if (proxy->cache.directory >= 0)
        cache_close(&proxy->cache);
    if (proxy->pool != NULL)
        origin_pool_close(proxy->pool);
    if (proxy->tls != NULL)
        tls_client_close(proxy->tls);
    if (proxy->names != NULL)
        name_lookup_close(proxy->names);
    if (proxy->hosts != NULL)
        munmap(proxy->hosts, HOSTS_LIMIT);
    munmap(proxy, sizeof *proxy);
}

static bool is_of_this_machine(struct transport *client)
{
    union address peer;

    return transport_proven_peer(client, &peer) && address_is_loopback(&peer);
}

static bool may_reach_loopback(const struct proxy *proxy, struct transport *client)
{
    return proxy->origin.length == 0 &&
           (!proxy->serves_others || proxy->loopback_for_all || is_of_this_machine(client));
}

static bool is_allowed(const struct proxy *proxy, struct transport *client,
                       const union address *address)
{
    if (address_is_loopback(address) && may_reach_loopback(proxy, client))
        return true;
    return is_listed(proxy, address) ||
           (proxy->names != NULL && address_scope(address) <= proxy->scope);
}

static bool is_itself(const struct proxy *proxy, const union address *address)
{
    for (int i = 0; i < proxy->own_count; i++) {
        const union address *own = &proxy->own[i];
        if (address_same(own, address))
            return true;
        if (address_port(own) == address_port(address) && address_is_any(own) &&
            (address_is_loopback(address) || address_is_any(address)))
            return true;
    }
    return false;
}

int proxy_judge(const struct proxy *proxy, struct transport *client,
                struct address_list *destination, const char **problem)
{
    bool itself = false;
    int count = 0;

    for (int i = 0; i < destination->count; i++) {
        const union address *address = &destination->addresses[i];
        if (is_itself(proxy, address))
            itself = true;
        else if (is_allowed(proxy, client, address))
            destination->addresses[count++] = *address;
    }
    destination->count = itself ? 0 : count; /* any of them may be the proxy itself */
    if (destination->count > 0)
        return 0;
    *problem = itself
                   ? "The request would come back to this proxy."
                   : "This proxy does not connect there: loopback addresses, for clients of this "
                     "machine, and those that it was started with --allow for are all that it "
                     "knows.";
    return itself ? 508 : 403;
}
