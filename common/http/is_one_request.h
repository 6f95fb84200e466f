/* Tells whether bytes are exactly one request. */
#ifndef COMMON_HTTP_IS_ONE_REQUEST_H
#define COMMON_HTTP_IS_ONE_REQUEST_H

#include "common/base/text.h"

/* Returns true if the bytes are one request, with its body, and nothing else. A request that is
 * refused for another reason than its syntax, such as its length, counts as one. */
bool is_one_request(struct text bytes);

#endif
