/* The registry of services. */
#include "common/services.h"

#include <string.h>

static const struct service *const services[SERVICES_COUNT] = {
    &service_files,
    &service_generated,
    &service_proxy,
};

const struct service *services_at(int number)
{
    return services[number];
}

const struct service *services_find(const char *name)
{
    for (int i = 0; i < SERVICES_COUNT; i++)
        if (strcmp(name, services[i]->name) == 0)
            return services[i];
    return NULL;
}
