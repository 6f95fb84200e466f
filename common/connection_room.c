/* How many connections fit into the memory of the control group. */
#include "common/connection_room.h"

#include "common/base/memory_limit.h"

/* The memory that a connection takes in the server and in the kernel, in KiB: measured in a control
 * group with 150 to 200 connections held, and rounded up. tests/memory_limit.t holds as many as
 * fit. */
struct cost {
    uint64_t idle;
    uint64_t tls; /* for each side that speaks TLS: the client, and a proxy's origin */
};

static const struct cost process_cost = {112, 212};
static const struct cost thread_cost = {40, 38};
static const struct cost event_loop_cost = {4, 22};

#define HEAD_COST 36 /* of a request that is as long as it may be */

static const struct cost *cost_of(const struct model *model)
{
    if (model->workers_per_processor > 0)
        return &event_loop_cost;
    return model_makes_processes(model) ? &process_cost : &thread_cost;
}

/* A quarter of the memory is left for documents and what else runs in the group. */
uint64_t connection_room(const struct options *options, const struct model *model)
{
    const struct cost *cost = cost_of(model);
    uint64_t sides = (uint64_t)options->tls + (uint64_t)options->origin_tls;
    uint64_t each = cost->idle + HEAD_COST + cost->tls * sides + (uint64_t)options->service->kib;

    return memory_limit() / 4 * 3 / (each * 1024);
}
