/* How the body of a request goes to the origin. */
#ifndef COMMON_UPLOADING_H
#define COMMON_UPLOADING_H

#include "common/passage.h"

/* The stage of it. */
enum progress uploading_upload(struct errand *errand);

#endif
