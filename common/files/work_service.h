/* The service that does as much work for a request as its path says. */
#ifndef COMMON_FILES_WORK_SERVICE_H
#define COMMON_FILES_WORK_SERVICE_H

#include "common/service.h"

extern const struct service service_work;

#endif
