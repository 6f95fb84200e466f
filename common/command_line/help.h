/* The help text of a server. */
#ifndef COMMON_HELP_H
#define COMMON_HELP_H

#include "common/model.h"

void help_print(const struct model *model);

#endif
