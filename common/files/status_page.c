/* Answers /.status with the counters of the server as JSON. */
#include "common/files/status_page.h"

#include <stdlib.h>

#define TOTALS_ROOM 512
#define WORKER_ROOM 80

static void add_number(struct buffer *json, const char *name, uint64_t number)
{
    buffer_string(json, ", \"");
    buffer_string(json, name);
    buffer_string(json, "\": ");
    buffer_number(json, number);
}

static void add_totals(struct buffer *json, const struct service_context *context)
{
    const struct scoreboard *board = context->board;
    struct total total = scoreboard_total(board, context->slot_count);
    int64_t active = atomic_load(&board->active);

    buffer_string(json, "{\"server\": \"");
    buffer_string(json, context->server);
    buffer_string(json, "\"");
    add_number(json, "connections", total.connections);
    add_number(json, "active", active > 0 ? (uint64_t)active : 0);
    add_number(json, "peak", atomic_load(&board->peak));
    add_number(json, "requests", total.requests);
    add_number(json, "errors", total.errors);
    add_number(json, "bytes", total.bytes);
    add_number(json, "made", atomic_load(&board->made));
    add_number(json, "gave_way", atomic_load(&board->gave_way));
    add_number(json, "refused", atomic_load(&board->refused));
}

/* A server without workers has one slot, for all connections. */
static void add_workers(struct buffer *json, const struct service_context *context)
{
    buffer_string(json, ", \"workers\": [");
    for (int i = 0; i < context->slot_count; i++) {
        buffer_string(json, i > 0 ? ", {\"worker\": " : "{\"worker\": ");
        buffer_number(json, (uint64_t)i);
        add_number(json, "requests", atomic_load(&context->board->slots[i].requests));
        buffer_string(json, "}");
    }
    buffer_string(json, "]");
}

void status_page_answer(const struct service_context *context, struct response *response)
{
    struct buffer json = {.capacity = TOTALS_ROOM + (size_t)context->slot_count * WORKER_ROOM};

    json.data = malloc(json.capacity);
    if (json.data == NULL) {
        response_refuse(response, 503, "The server has no memory for its counters.");
        return;
    }
    add_totals(&json, context);
    if (context->slot_count > 1)
        add_workers(&json, context);
    buffer_string(&json, "}\n");
    response->status = 200;
    response->type = TEXT("application/json");
    response->caching = CACHING_VALIDATED;
    response->body = response_page(&json);
}
