/* The page of --status: the counters of the server as JSON. */
#ifndef COMMON_FILES_STATUS_PAGE_H
#define COMMON_FILES_STATUS_PAGE_H

#include "common/service.h"

/* No document has this path: names that begin with a dot are hidden. */
#define STATUS_PAGE_PATH "/.status"

/* Fills in the response with the counters of now. */
void status_page_answer(const struct service_context *context, struct response *response);

#endif
