#include "common/proxy/proxy_request.h"

#include "common/proxy/cache_lookup.h"
#include "common/proxy/fetch.h"
#include "common/proxy/relay.h"
#include "common/proxy/send_body.h"
#include "common/proxy/send_response.h"
#include "common/proxy/serve_cached.h"
#include "common/proxy/storage.h"
#include "common/proxy/tunnel.h"

#include <stdlib.h>

#define METHODS "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"

/* ---- the beginning ---- */

static bool is_numeric_above(struct text path, uint64_t limit)
{
    uint64_t number;

    for (size_t i = 1; i < path.length; i++)
        if (path.data[i] < '0' || path.data[i] > '9')
            return false;
    /* One that is too large to be held is above all limits. */
    return path.length > 1 &&
           (!text_number((struct text){path.data + 1, path.length - 1}, &number) || number > limit);
}

static bool may_go_no_further(const struct request *request)
{
    uint64_t left;

    return rewrite_left(request, &left) && left == 0;
}

/* Which host is meant. 0, or the status of a refusal. */
static int find_authority(struct service_call *call, const char **problem)
{
    struct proxy_request *proxied = call->work;
    const struct request *request = call->request;
    uint16_t port = request->method == METHOD_CONNECT ? 0 : 80;

    *problem = "The request target names no host and port that can be connected to.";
    proxied->authority = request->host;
    if (proxied->proxy->origin != NULL) {
        if (request->method == METHOD_CONNECT) {
            *problem = "This proxy stands before one origin, and makes no tunnels.";
            return 405;
        }
        proxied->authority = text_of(proxied->proxy->origin);
    } else if (request->method == METHOD_CONNECT && request->framing != FRAMING_NONE) {
        *problem = "What comes behind CONNECT is for the tunnel: it cannot be a body.";
        return 400;
    } else if (request->method != METHOD_CONNECT && !rewrite_is_absolute(request)) {
        *problem = "This is a proxy: it wants to be asked for whole addresses, such as "
                   "http://127.0.0.1:8080/.";
        return 400;
    }
    return address_split(proxied->authority, port, &proxied->host, &proxied->port) ? 0 : 400;
}

static int find_destination(struct service_call *call, const char **problem)
{
    struct proxy_request *proxied = call->work;
    const struct proxy *proxy = proxied->proxy;
    struct text hosts = {proxy->hosts, proxy->hosts_length};

    if (address_find(&proxied->destination, hosts, proxied->host, proxied->port))
        return proxy_judge(proxy, &proxied->destination, problem);
    *problem = "The host is not known here: it is no numeric address, not localhost, and not in "
               "the hosts file of the proxy.";
    return 502;
}

/* What can be said without asking anybody. 0, or a status. */
static int judge(const struct service_call *call, const char **problem)
{
    const struct proxy_request *proxied = call->work;
    const struct proxy *proxy = proxied->proxy;
    const struct request *request = call->request;

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
    if (proxy->classroom && is_numeric_above(request->path, 9999)) {
        *problem = "The number is above 9999.";
        return 414;
    }
    if (request->framing == FRAMING_LENGTH && request->content_length > proxy->body_limit) {
        *problem = "The body of the request is longer than is allowed here.";
        return 413;
    }
    return 0;
}

static bool make(struct service_call *call)
{
    const struct request *request = call->request;
    struct proxy_request *proxied = calloc(1, sizeof *proxied);

    if (proxied == NULL)
        return false;
    proxied->proxy = call->context->state;
    /* Whoever asks in HTTP/1.0 may be a proxy that has passed on what it does not know (RFC 9112,
     * section 9.3); before one origin, this is a server like others. */
    if (request->minor == 0 && request->keep_alive && proxied->proxy->origin == NULL)
        call->keeps_connection = false;
    proxied->cache = proxied->proxy->cache.shared != NULL ? &proxied->proxy->cache : NULL;
    proxied->entry.file = proxied->writer.file = -1;
    proxied->lock = CACHE_LOCK_BUSY;
    proxied->uploaded = request->framing == FRAMING_NONE;
    poll_pair_start(&proxied->poll_pair);
    call->work = proxied;
    return true;
}

static enum service_progress begin(struct service_call *call)
{
    const struct request *request = call->request;
    struct proxy_request *proxied = call->work;
    const char *problem = NULL;
    int status = judge(call, &problem);

    if (status == 0 && may_go_no_further(request)) {
        call->response->status = 204;
        call->response->allow =
            proxied->proxy->origin == NULL ? TEXT(METHODS ", CONNECT") : TEXT(METHODS);
        return SERVICE_RESPONDS;
    }
    if (status == 0)
        status = find_authority(call, &problem);
    if (status == 0)
        status = find_destination(call, &problem);
    if (status == 0 && !storage_begin(call)) {
        status = 503;
        problem = "The proxy has no memory for this request.";
    }
    if (status == 0)
        return relay_go_to(proxied, STAGE_LOOKING);
    relay_refuse(call, status, problem);
    if (status == 405)
        call->response->allow = TEXT(METHODS);
    return SERVICE_RESPONDS;
}

/* ---- the service ---- */

/* Whether what the client sends next is a request: otherwise it is what is left of a body, or was
 * meant for a tunnel. */
static bool is_taken(const struct service_call *call)
{
    const struct proxy_request *proxied = call->work;

    return call->request->method != METHOD_CONNECT &&
           (call->request->framing == FRAMING_NONE || (proxied != NULL && proxied->uploaded));
}

/* What comes after the client has its reply is nothing to tell it. */
static enum service_progress conclude(struct service_call *call, enum service_progress progress)
{
    const struct proxy_request *proxied = call->work;

    if (progress == SERVICE_RESPONDS && !is_taken(call))
        call->keeps_connection = false;
    if (proxied == NULL || !proxied->background || progress == SERVICE_WAITS)
        return progress;
    response_end(call->response);
    call->response->status = proxied->served;
    return SERVICE_DONE;
}

static enum service_progress step(struct service_call *call)
{
    static enum service_progress (*const stages[])(struct service_call *) = {
        [STAGE_BEGINNING] = begin,
        [STAGE_LOOKING] = cache_lookup_find,
        [STAGE_SERVING] = serve_cached_run,
        [STAGE_OPENING] = fetch_open,
        [STAGE_CONNECTING] = fetch_connect,
        [STAGE_SENDING] = fetch_send,
        [STAGE_UPLOADING] = send_body_run,
        [STAGE_AWAITING] = fetch_await,
        [STAGE_HINTING] = fetch_hint,
        [STAGE_JUDGING] = cache_lookup_judge,
        [STAGE_DELIVERING] = send_response_run,
        [STAGE_TUNNELLING] = tunnel_run,
        [STAGE_FAILING] = cache_lookup_fail,
    };
    enum service_progress progress = SERVICE_CONTINUES;

    if (call->work == NULL && !make(call))
        return conclude(call, relay_refuse(call, 503, "The proxy has no memory."));
    while (progress == SERVICE_CONTINUES) {
        const struct proxy_request *proxied = call->work;
        progress = stages[proxied->stage](call);
    }
    return conclude(call, progress);
}

static enum service_progress give_up(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    switch (proxied->stage) {
    case STAGE_CONNECTING:
        proxied->late = true;
        return fetch_try_next(call);
    case STAGE_UPLOADING:
        if (proxied->client_slow)
            return relay_refuse(call, 408, "The body of the request did not come in time.");
        /* fall through */
    case STAGE_SENDING:
    case STAGE_AWAITING:
        return relay_fail(call, 504, "The origin did not answer in time.");
    case STAGE_SERVING:
    case STAGE_DELIVERING:
        return send_response_break_off(call);
    case STAGE_TUNNELLING:
        return SERVICE_DONE;
    case STAGE_BEGINNING:
    case STAGE_LOOKING: /* for what somebody else fetches: it looks again */
    case STAGE_OPENING:
    case STAGE_HINTING: /* it is the client that is waited for */
    case STAGE_JUDGING:
    case STAGE_FAILING:
        break;
    }
    return SERVICE_WAITS;
}

static enum service_progress expire(struct service_call *call)
{
    enum service_progress progress = give_up(call);

    /* The step that follows goes on. */
    return conclude(call, progress == SERVICE_CONTINUES ? SERVICE_WAITS : progress);
}

static void end(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    poll_pair_close(&proxied->poll_pair);
    if (proxied->fetch != NULL)
        upstream_close(&proxied->fetch->upstream);
    storage_end(call);
    free(proxied->fetch);
    free(proxied);
}

const struct service service_proxy = {
    .name = "proxy",
    .descriptors = 2, /* the origin, and what waits for both sides of a tunnel */
    .step = step,
    .expire = expire,
    .end = end,
};
