/* Media types, by the ending of a name. */
#ifndef COMMON_TYPE_H
#define COMMON_TYPE_H

#include "common/text.h"

/* "application/octet-stream" if the ending is not known. */
struct text type_of(struct text path);

#endif
