/* The stage that moves bytes between the client and the origin in both directions (CONNECT). */
#ifndef COMMON_PROXY_TUNNEL_H
#define COMMON_PROXY_TUNNEL_H

#include "common/proxy/fetch.h"

struct tunnel {
    bool open;
    bool client_ended, origin_ended; /* it sends nothing more */
};

enum service_progress tunnel_run(struct tunnel *tunnel, struct fetch *fetch,
                                 struct service_call *call);

#endif
