/* The registry of services: the only module that knows which services there are. */
#ifndef COMMON_SERVICES_H
#define COMMON_SERVICES_H

#include "common/service.h"

#define SERVICES_COUNT 3

/* The service with this number, from 0. */
const struct service *services_at(int number);
/* The service with this name; NULL: there is none. */
const struct service *services_find(const char *name);

#endif
