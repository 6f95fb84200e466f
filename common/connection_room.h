/* The memory that connections take, against what the control group of the server has. */
#ifndef COMMON_CONNECTION_ROOM_H
#define COMMON_CONNECTION_ROOM_H

#include "common/model.h"
#include "common/options.h"

#include <stdint.h>

/* How many connections at once the memory is enough for, whatever they send. */
uint64_t connection_room(const struct options *options, const struct model *model);

#endif
