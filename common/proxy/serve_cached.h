/* How a stored reply goes to the client. */
#ifndef COMMON_PROXY_SERVE_CACHED_H
#define COMMON_PROXY_SERVE_CACHED_H

#include "common/proxy/proxy_request.h"

/* Answers with the entry; its fields may have been updated since it was stored. `status` is that of
 * the origin's reply which led to it; 0: it did not answer; -1: it was not asked. */
enum service_progress serve_cached_answer(struct service_call *call, struct text fields,
                                          int status);

/* The stage in which what is stale is served before the origin is asked about it. */
enum service_progress serve_cached_run(struct service_call *call);

#endif
