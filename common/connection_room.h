/* The memory that connections take, against what the control group of the server has. */
#ifndef COMMON_CONNECTION_ROOM_H
#define COMMON_CONNECTION_ROOM_H

#include "common/model.h"
#include "common/options.h"

#include <stdint.h>

/* Returns how many connections at once fit into the memory, whatever they send. */
uint64_t connection_room(const struct options *options, const struct model *model);

#endif
