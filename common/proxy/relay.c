#include "common/proxy/relay.h"

#include <stdlib.h>

enum service_progress relay_go_to(struct proxy_request *proxied, enum stage stage)
{
    proxied->stage = stage;
    return SERVICE_CONTINUES;
}

enum service_progress relay_refuse(struct service_call *call, int status, const char *problem)
{
    response_start(call->response);
    response_refuse(call->response, status, problem);
    return SERVICE_RESPONDS;
}

enum service_progress relay_fail(struct service_call *call, int status, const char *problem)
{
    struct proxy_request *proxied = call->work;

    proxied->failure = status;
    proxied->problem = problem;
    return relay_go_to(proxied, STAGE_FAILING);
}

void relay_renew(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    proxied->origin = call->now.milliseconds + proxied->proxy->timeout;
}

unsigned relay_wanted(enum transfer transfer)
{
    return transfer == TRANSFER_READ    ? POLL_PAIR_READ
           : transfer == TRANSFER_WRITE ? POLL_PAIR_WRITE
                                        : 0;
}

enum service_progress relay_wait(struct service_call *call, unsigned client, unsigned origin)
{
    struct proxy_request *proxied = call->work;
    int ours = call->client->socket, theirs = proxied->fetch->upstream.transport.socket;

    call->deadline = proxied->origin;
    if (client != 0 && call->client_deadline != 0 &&
        (origin == 0 || call->client_deadline < call->deadline))
        call->deadline = call->client_deadline;
    call->to_write = false;
    if ((client == 0 || origin == 0) && (client | origin) != (POLL_PAIR_READ | POLL_PAIR_WRITE)) {
        call->descriptor = client != 0 ? ours : theirs;
        call->to_write = (client | origin) == POLL_PAIR_WRITE;
    } else {
        call->descriptor = poll_pair_watch(&proxied->poll_pair, ours, client, theirs, origin);
    }
    return call->descriptor >= 0 ? SERVICE_WAITS : SERVICE_FAILED;
}

bool relay_make_fetch(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    proxied->fetch = malloc(sizeof *proxied->fetch);
    if (proxied->fetch != NULL)
        upstream_start(&proxied->fetch->upstream);
    return proxied->fetch != NULL;
}

void relay_write_status(const struct service_call *call, int status, struct text reason,
                        struct buffer *lines)
{
    buffer_add(lines,
               call->context->protocol == PROTOCOL_SIMPLE ? TEXT("HTTP/1.0 ") : TEXT("HTTP/1.1 "));
    buffer_number(lines, (uint64_t)status);
    buffer_character(lines, ' ');
    buffer_add(lines, reason);
    buffer_add(lines, TEXT("\r\n"));
}

bool relay_goes_on(const struct service_call *call)
{
    return call->keeps_connection && call->request->keep_alive &&
           call->context->protocol != PROTOCOL_SIMPLE;
}

void relay_write_persistence(const struct service_call *call, struct buffer *lines)
{
    if (!relay_goes_on(call))
        buffer_add(lines, TEXT("Connection: close\r\n"));
    else if (call->request->minor == 0)
        buffer_add(lines, TEXT("Connection: keep-alive\r\n"));
    buffer_add(lines, TEXT("\r\n"));
}
