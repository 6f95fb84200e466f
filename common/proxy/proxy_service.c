/* Runs the stages of each request, and checks the request in the first. */
#include "common/proxy/proxy_service.h"

#include "common/proxy/cache_counters.h"
#include "common/proxy/cache_lookup.h"
#include "common/proxy/cache_store.h"
#include "common/proxy/fetch.h"
#include "common/proxy/fetch_outcome.h"
#include "common/proxy/find_origin.h"
#include "common/proxy/follow.h"
#include "common/proxy/proxy_setup.h"
#include "common/proxy/rewrite.h"
#include "common/proxy/send_request_body.h"
#include "common/proxy/send_response.h"
#include "common/proxy/serve_cached.h"
#include "common/proxy/stage.h"
#include "common/proxy/tunnel.h"

#include <stddef.h>
#include <stdlib.h>

#define METHODS "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"

/* The state of a request. Each stage gets the parts that it needs. */
struct proxy_request {
    struct stage_state state; /* the first member: see stage.h */
    struct origin origin;
    struct cache_lookup lookup;
    struct fetch *fetch; /* NULL until the origin is asked, or a stale entry is served */
    struct cache_store store;
    struct send_request_body request_body;
    struct tunnel tunnel;
};

_Static_assert(offsetof(struct proxy_request, state) == 0, "stage.c finds the state there");

/* ---- the first stage ---- */

static bool is_number_above(struct text path, uint64_t limit)
{
    uint64_t number;

    for (size_t i = 1; i < path.length; i++)
        if (path.data[i] < '0' || path.data[i] > '9')
            return false;
    /* A number that text_number() cannot hold is above any limit. */
    return path.length > 1 &&
           (!text_number((struct text){path.data + 1, path.length - 1}, &number) || number > limit);
}

static bool may_go_no_further(const struct request *request)
{
    uint64_t left;

    return rewrite_left(request, &left) && left == 0;
}

/* Makes the checks that need no origin. Returns 0, or the status of an error and its `problem`. */
static int check(const struct proxy *proxy, const struct request *request, const char **problem)
{
    if (rewrite_has_looped(request, text_of(proxy->name))) {
        *problem = "The request has come through this proxy before.";
        return 508;
    }
    if (request->scheme == SCHEME_HTTPS && proxy->origin_port == 0) {
        *problem = "Origins are asked by plain HTTP: to reach one by HTTPS, use CONNECT.";
        return 400;
    }
    if (request->method == METHOD_TRACE) {
        *problem = "Requests are not sent back here.";
        return 405;
    }
    if (proxy->classroom && is_number_above(request->path, 9999)) {
        *problem = "The number is above 9999.";
        return 414;
    }
    if (request->framing == FRAMING_LENGTH && request->content_length > proxy->body_limit) {
        *problem = "The body of the request is longer than is allowed here.";
        return 413;
    }
    return 0;
}

/* ---- removing entries ---- */

/* Without a cache, the origin may know the method. */
static bool is_purge(const struct cache_lookup *lookup, const struct request *request)
{
    const struct text method = TEXT("PURGE ");

    return lookup->cache != NULL && request->method == METHOD_UNKNOWN &&
           request->line.length > method.length &&
           text_equal((struct text){request->line.data, method.length}, method);
}

/* Removes all responses to the URI, if the client is on this machine. */
static enum service_progress purge(struct cache_lookup *lookup, struct service_call *call)
{
    union address peer;
    enum cache_found found;

    if (!transport_proven_peer(call->client, &peer) || !address_is_loopback(&peer))
        return stage_refuse(call, 403, "Only clients on this machine may remove entries.");
    found =
        cache_find(lookup->cache, lookup->uri, call->request->fields, &lookup->entry, lookup->name);
    cache_remove(lookup->cache, lookup->uri);
    if (found == CACHE_NOTHING)
        return stage_refuse(call, 404, "The cache has no response of that URI.");
    response_start(call->response);
    call->response->status = 204;
    return SERVICE_RESPONDS;
}

/* ---- the state ---- */

static bool make(struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    const struct request *request = call->request;
    struct proxy_request *proxied = calloc(1, sizeof *proxied);

    if (proxied == NULL)
        return false;
    /* A client of HTTP/1.0 may be a proxy that forwards fields it does not know (RFC 9112, section
     * 9.3). In front of one origin this is a server, and its clients are no proxies. */
    if (request->minor == 0 && request->keep_alive && proxy->origin.length == 0)
        call->keeps_connection = false;
    cache_lookup_start(&proxied->lookup, proxy->cache.shared != NULL ? &proxy->cache : NULL);
    cache_store_start(&proxied->store, &proxied->lookup);
    proxied->request_body.complete = request->framing == FRAMING_NONE;
    call->work = proxied;
    return true;
}

static enum service_progress begin(struct proxy_request *proxied, struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    const struct request *request = call->request;
    const char *problem = NULL;
    int status = check(proxy, request, &problem);

    if (status == 0 && may_go_no_further(request)) {
        call->response->status = 204;
        call->response->allow =
            proxy->origin.length == 0 ? TEXT(METHODS ", CONNECT") : TEXT(METHODS);
        return SERVICE_RESPONDS;
    }
    if (status == 0)
        status = find_origin_run(&proxied->origin, call, &problem);
    if (status == 0 && !cache_lookup_begin(&proxied->lookup, &proxied->origin, call)) {
        status = 503;
        problem = "The proxy has no memory for this request.";
    }
    if (status == 0 && is_purge(&proxied->lookup, request))
        return purge(&proxied->lookup, call);
    if (status == 0)
        return stage_go_to(call, STAGE_LOOKUP);
    stage_refuse(call, status, problem);
    if (status == 405)
        call->response->allow = TEXT(METHODS);
    return SERVICE_RESPONDS;
}

/* ---- the other stages, with their parts ---- */

static enum service_progress look_up(struct proxy_request *proxied, struct service_call *call)
{
    return cache_lookup_run(&proxied->lookup, call);
}

static enum service_progress serve_cached(struct proxy_request *proxied, struct service_call *call)
{
    return serve_cached_run(&proxied->lookup, call);
}

static enum service_progress serve_part(struct proxy_request *proxied, struct service_call *call)
{
    return serve_cached_part(&proxied->lookup, call);
}

/* Makes the fetch if there is none. Returns false if it cannot yet, or for want of memory. */
static bool make_fetch(struct proxy_request *proxied, struct service_call *call,
                       enum service_progress *progress)
{
    if (call->output_pending) {
        *progress = SERVICE_NEEDS_FLUSH;
        return false;
    }
    if (proxied->fetch == NULL)
        proxied->fetch = fetch_make(&proxied->origin);
    if (proxied->fetch == NULL)
        *progress = stage_refuse(call, 503, "The proxy has no memory for this request.");
    return proxied->fetch != NULL;
}

static enum service_progress follow(struct proxy_request *proxied, struct service_call *call)
{
    enum service_progress progress;

    return make_fetch(proxied, call, &progress) ? follow_run(&proxied->lookup, proxied->fetch, call)
                                                : progress;
}

static enum service_progress serve_stale(struct proxy_request *proxied, struct service_call *call)
{
    enum service_progress progress;

    return make_fetch(proxied, call, &progress)
               ? serve_cached_stale(&proxied->store, proxied->fetch, call)
               : progress;
}

static enum service_progress open_fetch(struct proxy_request *proxied, struct service_call *call)
{
    enum service_progress progress;

    return make_fetch(proxied, call, &progress) ? fetch_open(proxied->fetch, &proxied->lookup, call)
                                                : progress;
}

static enum service_progress connect_fetch(struct proxy_request *proxied, struct service_call *call)
{
    return fetch_connect(proxied->fetch, &proxied->lookup, call);
}

static enum service_progress connect_late(struct proxy_request *proxied, struct service_call *call)
{
    return fetch_connect_late(proxied->fetch, &proxied->lookup, call);
}

static enum service_progress send_head(struct proxy_request *proxied, struct service_call *call)
{
    return fetch_send_head(proxied->fetch, call);
}

static enum service_progress send_request_body(struct proxy_request *proxied,
                                               struct service_call *call)
{
    return send_request_body_run(&proxied->request_body, proxied->fetch, call);
}

static enum service_progress expire_body(struct proxy_request *proxied, struct service_call *call)
{
    return send_request_body_expire(&proxied->request_body, call);
}

static enum service_progress await_head(struct proxy_request *proxied, struct service_call *call)
{
    return fetch_await_head(proxied->fetch, call);
}

static enum service_progress fail_late(struct proxy_request *proxied, struct service_call *call)
{
    (void)proxied;
    return stage_fail(call, 504, "The origin did not answer in time.");
}

static enum service_progress send_interim(struct proxy_request *proxied, struct service_call *call)
{
    return fetch_send_interim(proxied->fetch, &proxied->lookup, call);
}

static enum service_progress choose(struct proxy_request *proxied, struct service_call *call)
{
    if (!proxied->request_body.complete)
        call->keeps_connection = false; /* nobody reads the rest of the request */
    return fetch_outcome_run(&proxied->store, proxied->fetch, call);
}

static enum service_progress send_response(struct proxy_request *proxied, struct service_call *call)
{
    return send_response_run(&proxied->store, proxied->fetch, call);
}

static enum service_progress break_off(struct proxy_request *proxied, struct service_call *call)
{
    return send_response_break_off(proxied->fetch, call);
}

static enum service_progress expire_response(struct proxy_request *proxied,
                                             struct service_call *call)
{
    return send_response_expire(&proxied->store, proxied->fetch, call);
}

static enum service_progress tunnel(struct proxy_request *proxied, struct service_call *call)
{
    return tunnel_run(&proxied->tunnel, proxied->fetch, call);
}

static enum service_progress end_tunnel(struct proxy_request *proxied, struct service_call *call)
{
    (void)proxied;
    (void)call;
    return SERVICE_DONE;
}

static enum service_progress fail(struct proxy_request *proxied, struct service_call *call)
{
    return fetch_outcome_fail(&proxied->lookup, call);
}

/* ---- the service ---- */

typedef enum service_progress stage_function(struct proxy_request *proxied,
                                             struct service_call *call);

/* The functions that run in a step, and when the deadline has passed; NULL: the stage runs again.
 */
static const struct {
    stage_function *run, *expire;
} stages[] = {
    [STAGE_BEGIN] = {begin, NULL},
    [STAGE_LOOKUP] = {look_up, NULL},
    [STAGE_SERVE_CACHED] = {serve_cached, NULL},
    [STAGE_SERVE_PART] = {serve_part, NULL},
    [STAGE_FOLLOW] = {follow, NULL},
    [STAGE_SERVE_STALE] = {serve_stale, break_off},
    [STAGE_OPEN] = {open_fetch, NULL},
    [STAGE_CONNECT] = {connect_fetch, connect_late},
    [STAGE_SEND_HEAD] = {send_head, fail_late},
    [STAGE_SEND_BODY] = {send_request_body, expire_body},
    [STAGE_AWAIT_HEAD] = {await_head, fail_late},
    [STAGE_SEND_INTERIM] = {send_interim, NULL},
    [STAGE_CHOOSE] = {choose, NULL},
    [STAGE_SEND] = {send_response, expire_response},
    [STAGE_TUNNEL] = {tunnel, end_tunnel},
    [STAGE_FAIL] = {fail, NULL},
};

/* Returns true if the client's next bytes are a request: not the rest of a body, and not meant for
 * a tunnel. */
static bool is_taken(const struct service_call *call)
{
    const struct proxy_request *proxied = call->work;

    return call->request->method != METHOD_CONNECT &&
           (call->request->framing == FRAMING_NONE ||
            (proxied != NULL && proxied->request_body.complete));
}

/* Returns the result of a step for the connection. A client that has got a stale entry does not
 * learn how the fetch after it ended. */
static enum service_progress conclude(struct service_call *call, enum service_progress progress)
{
    const struct proxy_request *proxied = call->work;

    if (progress == SERVICE_RESPONDS && !is_taken(call))
        call->keeps_connection = false;
    if (proxied == NULL || proxied->fetch == NULL || proxied->fetch->served == 0 ||
        progress == SERVICE_WAITS)
        return progress;
    response_end(call->response);
    call->response->status = proxied->fetch->served;
    return SERVICE_DONE;
}

static enum service_progress step(struct service_call *call)
{
    enum service_progress progress = SERVICE_CONTINUES;

    if (call->work == NULL && !make(call))
        return conclude(call, stage_refuse(call, 503, "The proxy has no memory."));
    while (progress == SERVICE_CONTINUES) {
        struct proxy_request *proxied = call->work;
        progress = stages[proxied->state.stage].run(proxied, call);
    }
    return conclude(call, progress);
}

static enum service_progress expire(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    stage_function *give_up = stages[proxied->state.stage].expire;
    enum service_progress progress = give_up != NULL ? give_up(proxied, call) : SERVICE_WAITS;

    /* The connection calls step() next, which runs the stage. */
    return conclude(call, progress == SERVICE_CONTINUES ? SERVICE_WAITS : progress);
}

static void end(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    if (proxied->fetch != NULL)
        fetch_free(proxied->fetch, call);
    cache_store_end(&proxied->store);
    cache_lookup_end(&proxied->lookup);
    free(proxied);
}

const struct service service_proxy = {
    .name = "proxy",
    .counters = &cache_counters,
    .watches_client = true,
    .broken_off = "The origin has broken off its response.",
    .descriptors = 2, /* the origin, and an epoll for the client and the origin */
    .kib = 92, /* what it sends to the origin, and has of its response: see connection_room.c */
    .step = step,
    .expire = expire,
    .end = end,
};
