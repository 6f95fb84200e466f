#include "common/proxy/relay.h"

#include <stdlib.h>

enum progress relay_go_to(struct passage *passage, enum stage stage)
{
    passage->stage = stage;
    return ERRAND_GOES_ON;
}

enum progress relay_refuse(struct errand *errand, int status, const char *problem)
{
    response_start(errand->response);
    response_refuse(errand->response, status, problem);
    return ERRAND_ANSWERED;
}

enum progress relay_fail(struct errand *errand, int status, const char *problem)
{
    struct passage *passage = errand->work;

    passage->failure = status;
    passage->problem = problem;
    return relay_go_to(passage, STAGE_FAILING);
}

void relay_renew(struct errand *errand)
{
    struct passage *passage = errand->work;

    passage->origin = errand->now.milliseconds + passage->proxy->timeout;
}

unsigned relay_wanted(enum transfer transfer)
{
    return transfer == TRANSFER_READ ? PAIR_READ : transfer == TRANSFER_WRITE ? PAIR_WRITE : 0;
}

enum progress relay_wait(struct errand *errand, unsigned client, unsigned origin)
{
    struct passage *passage = errand->work;
    int ours = errand->client->socket, theirs = passage->fetch->upstream.transport.socket;

    errand->deadline = passage->origin;
    if (client != 0 && errand->client_deadline != 0 &&
        (origin == 0 || errand->client_deadline < errand->deadline))
        errand->deadline = errand->client_deadline;
    errand->to_write = false;
    if ((client == 0 || origin == 0) && (client | origin) != (PAIR_READ | PAIR_WRITE)) {
        errand->descriptor = client != 0 ? ours : theirs;
        errand->to_write = (client | origin) == PAIR_WRITE;
    } else {
        errand->descriptor = pair_watch(&passage->pair, ours, client, theirs, origin);
    }
    return errand->descriptor >= 0 ? ERRAND_WAITS : ERRAND_FAILED;
}

bool relay_make_fetch(struct errand *errand)
{
    struct passage *passage = errand->work;

    passage->fetch = malloc(sizeof *passage->fetch);
    if (passage->fetch != NULL)
        upstream_start(&passage->fetch->upstream);
    return passage->fetch != NULL;
}

void relay_write_status(const struct errand *errand, int status, struct text reason,
                        struct buffer *lines)
{
    buffer_add(lines,
               errand->site->protocol == PROTOCOL_SIMPLE ? TEXT("HTTP/1.0 ") : TEXT("HTTP/1.1 "));
    buffer_number(lines, (uint64_t)status);
    buffer_character(lines, ' ');
    buffer_add(lines, reason);
    buffer_add(lines, TEXT("\r\n"));
}

bool relay_goes_on(const struct errand *errand)
{
    return errand->stays && errand->request->keep_alive &&
           errand->site->protocol != PROTOCOL_SIMPLE;
}

void relay_write_persistence(const struct errand *errand, struct buffer *lines)
{
    if (!relay_goes_on(errand))
        buffer_add(lines, TEXT("Connection: close\r\n"));
    else if (errand->request->minor == 0)
        buffer_add(lines, TEXT("Connection: keep-alive\r\n"));
    buffer_add(lines, TEXT("\r\n"));
}
