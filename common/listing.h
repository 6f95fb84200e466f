/* Directory listings. */
#ifndef COMMON_LISTING_H
#define COMMON_LISTING_H

#include "common/response.h"

/* Answers with a page of what is in the directory, which is closed. `path` is what it is called. */
void listing_answer(int directory, struct text path, struct response *response);

#endif
