/* Directory listings. */
#ifndef COMMON_FILES_LISTING_H
#define COMMON_FILES_LISTING_H

#include "common/http/response.h"

/* Answers with a page of what is in the directory, which is closed. `path` is where it is below the
 * root: empty, or with a slash at its end. */
void listing_answer(int root, int directory, const char *path, struct response *response);

#endif
