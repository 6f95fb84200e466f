/* Lists a directory as a page. */
#ifndef COMMON_FILES_LISTING_H
#define COMMON_FILES_LISTING_H

#include "common/http/response.h"

/* Fills in a response with the list of the directory, and closes the directory. `path` is its path
 * below the root: empty, or with a slash at its end. */
void listing_answer(int root, int directory, const char *path, struct response *response);

#endif
