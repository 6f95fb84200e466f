/* Moves a proxied request from one stage to the next. */
#include "common/proxy/stage.h"

enum service_progress stage_go_to(struct service_call *call, enum stage stage)
{
    struct stage_state *state = call->work;

    state->stage = stage;
    return SERVICE_CONTINUES;
}

enum service_progress stage_refuse(struct service_call *call, int status, const char *problem)
{
    response_start(call->response);
    response_refuse(call->response, status, problem);
    return SERVICE_RESPONDS;
}

enum service_progress stage_fail(struct service_call *call, int status, const char *problem)
{
    struct stage_state *state = call->work;

    state->status = status;
    state->problem = problem;
    return stage_go_to(call, STAGE_FAIL);
}
