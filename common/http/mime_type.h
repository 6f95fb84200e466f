/* Finds the media type of a file by the ending of its name. */
#ifndef COMMON_HTTP_MIME_TYPE_H
#define COMMON_HTTP_MIME_TYPE_H

#include "common/base/text.h"

/* Returns "application/octet-stream" if the ending is unknown. */
struct text mime_type_of(struct text path);

#endif
