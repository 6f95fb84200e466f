/* Media types, by the ending of a name. */
#ifndef COMMON_HTTP_MIME_TYPE_H
#define COMMON_HTTP_MIME_TYPE_H

#include "common/base/text.h"

/* "application/octet-stream" if the ending is not known. */
struct text mime_type_of(struct text path);

#endif
