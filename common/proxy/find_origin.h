/* The origin of a request: its name and its addresses. */
#ifndef COMMON_PROXY_FIND_ORIGIN_H
#define COMMON_PROXY_FIND_ORIGIN_H

#include "common/http/request.h"
#include "common/net/address.h"
#include "common/proxy/proxy_setup.h"

struct origin {
    struct text host; /* without the port */
    uint16_t port;
    struct text authority; /* host and port, as the Host field has them */
    struct address_list addresses;
    int tried; /* of the addresses */
    bool late; /* one of them did not accept in time */
};

/* Finds the origin that the request is for, and the addresses that the proxy may connect to for
 * this client. Returns 0, or the status of an error and its `problem`. */
int find_origin_run(struct origin *origin, const struct service_call *call, const char **problem);

/* Returns the next address to try; NULL if all were tried. */
const union address *find_origin_next_address(struct origin *origin);

#endif
