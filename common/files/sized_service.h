/* The service that answers with documents of a given size. */
#ifndef COMMON_FILES_SIZED_SERVICE_H
#define COMMON_FILES_SIZED_SERVICE_H

#include "common/service.h"

struct sized_service {
    int max_age; /* of constant documents, in seconds */
};

extern const struct service service_sized;

#endif
