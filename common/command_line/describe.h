/* A server's description of itself, for programs. */
#ifndef COMMON_DESCRIBE_H
#define COMMON_DESCRIBE_H

#include "common/model.h"

/* Prints one JSON object. */
void describe_print(const struct model *model);

#endif
