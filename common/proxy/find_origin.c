/* Finds the origin that a request is for. */
#include "common/proxy/find_origin.h"

#include "common/proxy/rewrite.h"

static int find_authority(struct origin *origin, const struct proxy *proxy,
                          const struct request *request, const char **problem)
{
    uint16_t port = request->method == METHOD_CONNECT ? 0 : proxy_default_port(proxy);

    *problem = "The request target names no host and port that can be connected to.";
    origin->authority = request->host;
    if (proxy->origin.length > 0) {
        if (request->method == METHOD_CONNECT) {
            *problem = "This proxy stands before one origin, and makes no tunnels.";
            return 405;
        }
        origin->authority = proxy->origin;
    } else if (request->method == METHOD_CONNECT && request->framing != FRAMING_NONE) {
        *problem = "What comes behind CONNECT is for the tunnel: it cannot be a body.";
        return 400;
    } else if (request->method != METHOD_CONNECT && !rewrite_is_absolute(request)) {
        *problem = "This is a proxy: ask it for a whole address, such as "
                   "http://127.0.0.1:8080/.";
        return 400;
    }
    return address_split(origin->authority, port, &origin->host, &origin->port) ? 0 : 400;
}

int find_origin_run(struct origin *origin, const struct service_call *call, const char **problem)
{
    const struct proxy *proxy = call->context->state;
    int status = find_authority(origin, proxy, call->request, problem);

    if (status != 0)
        return status;
    if (proxy_find_origin(proxy, origin->host, origin->port, call->now.milliseconds,
                          &origin->addresses))
        return proxy_judge(proxy, call->client, &origin->addresses, problem);
    if (proxy->names != NULL) {
        *problem = "The name of the origin cannot be looked up.";
        return 502;
    }
    *problem = "The host is not known here: it is no numeric address, not localhost, and not in "
               "the hosts file of the proxy.";
    return 502;
}

const union address *find_origin_next_address(struct origin *origin)
{
    if (origin->tried >= origin->addresses.count)
        return NULL;
    return &origin->addresses.addresses[origin->tried++];
}
