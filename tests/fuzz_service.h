/* The service that fuzzers of connections use, and the settings of the connections. */
#ifndef TESTS_FUZZ_SERVICE_H
#define TESTS_FUZZ_SERVICE_H

#include "common/connection.h"

static const char fuzz_document[] = "A document whose ranges and conditions are asked for.\n";

static inline void fuzz_answer(const struct service_context *context, const struct request *request,
                               struct moment now, struct response *response)
{
    (void)context;
    (void)now;
    if (request->method > METHOD_HEAD) {
        response_refuse(response, 405, "Only GET and HEAD.");
        return;
    }
    response->status = 200;
    response->type = TEXT("text/plain");
    response->has_validators = true;
    response->modified = 784111777;
    buffer_string(&response->etag, "\"a\"");
    response->body = (struct body){.kind = BODY_MEMORY,
                                   .length = sizeof fuzz_document - 1,
                                   .memory = fuzz_document,
                                   .file = -1};
}

static const struct service fuzz_service = {.name = "fuzz", .answer = fuzz_answer};

static const struct moment fuzz_now = {1700000000, 1000};

static inline struct service_context fuzz_context(const struct transport_kind *transport,
                                                  enum protocol protocol)
{
    static struct scoreboard board;

    return (struct service_context){
        .service = &fuzz_service,
        .protocol = protocol,
        .transport = transport,
        .scheme = SCHEME_HTTP,
        .request_timeout = 1000,
        .idle_timeout = 1000,
        .write_timeout = 1000,
        .board = &board,
    };
}

#endif
