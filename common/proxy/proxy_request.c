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

    return forward_left(request, &left) && left == 0;
}

/* Which host is meant. 0, or the status of a refusal. */
static int find_authority(struct errand *errand, const char **problem)
{
    struct passage *passage = errand->work;
    const struct request *request = errand->request;
    uint16_t port = request->method == METHOD_CONNECT ? 0 : 80;

    *problem = "The request target names no host and port that can be connected to.";
    passage->authority = request->host;
    if (passage->proxy->origin != NULL) {
        if (request->method == METHOD_CONNECT) {
            *problem = "This proxy stands before one origin, and makes no tunnels.";
            return 405;
        }
        passage->authority = text_of(passage->proxy->origin);
    } else if (request->method == METHOD_CONNECT && request->framing != FRAMING_NONE) {
        *problem = "What comes behind CONNECT is for the tunnel: it cannot be a body.";
        return 400;
    } else if (request->method != METHOD_CONNECT && !forward_is_absolute(request)) {
        *problem = "This is a proxy: it wants to be asked for whole addresses, such as "
                   "http://127.0.0.1:8080/.";
        return 400;
    }
    return destination_split(passage->authority, port, &passage->host, &passage->port) ? 0 : 400;
}

static int find_destination(struct errand *errand, const char **problem)
{
    struct passage *passage = errand->work;
    const struct proxy *proxy = passage->proxy;
    struct text hosts = {proxy->hosts, proxy->hosts_length};

    if (destination_find(&passage->destination, hosts, passage->host, passage->port))
        return proxy_judge(proxy, &passage->destination, problem);
    *problem = "The host is not known here: it is no numeric address, not localhost, and not in "
               "the hosts file of the proxy.";
    return 502;
}

/* What can be said without asking anybody. 0, or a status. */
static int judge(const struct errand *errand, const char **problem)
{
    const struct passage *passage = errand->work;
    const struct proxy *proxy = passage->proxy;
    const struct request *request = errand->request;

    if (forward_has_looped(request, text_of(proxy->name))) {
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

static bool make(struct errand *errand)
{
    const struct request *request = errand->request;
    struct passage *passage = calloc(1, sizeof *passage);

    if (passage == NULL)
        return false;
    passage->proxy = errand->site->proxy;
    /* Whoever asks in HTTP/1.0 may be a proxy that has passed on what it does not know (RFC 9112,
     * section 9.3); before one origin, this is a server like others. */
    if (request->minor == 0 && request->keep_alive && passage->proxy->origin == NULL)
        errand->stays = false;
    passage->cache = passage->proxy->cache.shared != NULL ? &passage->proxy->cache : NULL;
    passage->entry.file = passage->writer.file = -1;
    passage->lock = CACHE_LOCKED;
    passage->uploaded = request->framing == FRAMING_NONE;
    pair_start(&passage->pair);
    errand->work = passage;
    return true;
}

static enum progress begin(struct errand *errand)
{
    const struct request *request = errand->request;
    struct passage *passage = errand->work;
    const char *problem = NULL;
    int status = judge(errand, &problem);

    if (status == 0 && may_go_no_further(request)) {
        errand->response->status = 204;
        errand->response->allow =
            passage->proxy->origin == NULL ? TEXT(METHODS ", CONNECT") : TEXT(METHODS);
        return ERRAND_ANSWERED;
    }
    if (status == 0)
        status = find_authority(errand, &problem);
    if (status == 0)
        status = find_destination(errand, &problem);
    if (status == 0 && !storage_begin(errand)) {
        status = 503;
        problem = "The proxy has no memory for this request.";
    }
    if (status == 0)
        return relay_go_to(passage, STAGE_LOOKING);
    relay_refuse(errand, status, problem);
    if (status == 405)
        errand->response->allow = TEXT(METHODS);
    return ERRAND_ANSWERED;
}

/* ---- the service ---- */

/* Whether what the client sends next is a request: otherwise it is what is left of a body, or was
 * meant for a tunnel. */
static bool is_taken(const struct errand *errand)
{
    const struct passage *passage = errand->work;

    return errand->request->method != METHOD_CONNECT &&
           (errand->request->framing == FRAMING_NONE || (passage != NULL && passage->uploaded));
}

/* What comes after the client has its reply is nothing to tell it. */
static enum progress conclude(struct errand *errand, enum progress progress)
{
    const struct passage *passage = errand->work;

    if (progress == ERRAND_ANSWERED && !is_taken(errand))
        errand->stays = false;
    if (passage == NULL || !passage->background || progress == ERRAND_WAITS)
        return progress;
    response_end(errand->response);
    errand->response->status = passage->served;
    return ERRAND_DONE;
}

static enum progress step(struct errand *errand)
{
    static enum progress (*const stages[])(struct errand *) = {
        [STAGE_BEGINNING] = begin,
        [STAGE_LOOKING] = stored_look,
        [STAGE_SERVING] = serving_deliver,
        [STAGE_OPENING] = asking_open,
        [STAGE_CONNECTING] = asking_connect,
        [STAGE_SENDING] = asking_send,
        [STAGE_UPLOADING] = uploading_upload,
        [STAGE_AWAITING] = asking_await,
        [STAGE_HINTING] = asking_hint,
        [STAGE_JUDGING] = stored_judge,
        [STAGE_DELIVERING] = delivering_deliver,
        [STAGE_TUNNELLING] = tunnel_relay,
        [STAGE_FAILING] = stored_fail,
    };
    enum progress progress = ERRAND_GOES_ON;

    if (errand->work == NULL && !make(errand))
        return conclude(errand, relay_refuse(errand, 503, "The proxy has no memory."));
    while (progress == ERRAND_GOES_ON) {
        const struct passage *passage = errand->work;
        progress = stages[passage->stage](errand);
    }
    return conclude(errand, progress);
}

static enum progress give_up(struct errand *errand)
{
    struct passage *passage = errand->work;

    switch (passage->stage) {
    case STAGE_CONNECTING:
        passage->late = true;
        return asking_try_next(errand);
    case STAGE_UPLOADING:
        if (passage->client_slow)
            return relay_refuse(errand, 408, "The body of the request did not come in time.");
        /* fall through */
    case STAGE_SENDING:
    case STAGE_AWAITING:
        return relay_fail(errand, 504, "The origin did not answer in time.");
    case STAGE_SERVING:
    case STAGE_DELIVERING:
        return delivering_break_off(errand);
    case STAGE_TUNNELLING:
        return ERRAND_DONE;
    case STAGE_BEGINNING:
    case STAGE_LOOKING: /* for what somebody else fetches: it looks again */
    case STAGE_OPENING:
    case STAGE_HINTING: /* it is the client that is waited for */
    case STAGE_JUDGING:
    case STAGE_FAILING:
        break;
    }
    return ERRAND_WAITS;
}

static enum progress expire(struct errand *errand)
{
    enum progress progress = give_up(errand);

    /* The step that follows goes on. */
    return conclude(errand, progress == ERRAND_GOES_ON ? ERRAND_WAITS : progress);
}

static void end(struct errand *errand)
{
    struct passage *passage = errand->work;

    pair_close(&passage->pair);
    if (passage->fetch != NULL)
        upstream_close(&passage->fetch->upstream);
    storage_end(errand);
    free(passage->fetch);
    free(passage);
}

const struct service service_proxy = {
    .name = "proxy",
    .serves = "what others have",
    .connects = true,
    .descriptors = 2, /* the origin, and what waits for both sides of a tunnel */
    .step = step,
    .expire = expire,
    .end = end,
};
