/* The proxy as a service: forwards requests to origins, and stores their responses. */
#ifndef COMMON_PROXY_PROXY_SERVICE_H
#define COMMON_PROXY_PROXY_SERVICE_H

#include "common/service.h"

extern const struct service service_proxy;

#endif
