/* The service that answers with documents of a given size. */
#ifndef COMMON_FILES_GENERATED_H
#define COMMON_FILES_GENERATED_H

#include "common/service.h"

struct generated {
    int max_age; /* of constant documents, in seconds */
};

extern const struct service service_generated;

#endif
