/* What a passage has of the store. */
#ifndef COMMON_PROXY_STORAGE_H
#define COMMON_PROXY_STORAGE_H

#include "common/proxy/proxy_request.h"

/* Gives the passage its URI, and its part of the store. False if there is no memory. */
bool storage_begin(struct service_call *call);
void storage_end(struct service_call *call);

/* The origin is asked now. */
void storage_note_asking(struct service_call *call);
/* Whether what it says is news of what it has for all: not so to somebody with credentials, be they
 * made up. */
bool storage_is_for_all(const struct service_call *call);

/* Lets go of the entry that was found. */
void storage_drop_entry(struct proxy_request *proxied);
/* Has others wait for what the origin says; false if somebody else is asking it, or nobody can
 * wait.
 */
bool storage_lock(struct proxy_request *proxied);
/* Lets others ask the origin. */
void storage_give_way(struct proxy_request *proxied);

/* Writes what Cache-Status begins with; and a number, with its name before it. */
void storage_begin_status(struct buffer *lines);
void storage_add_parameter(struct buffer *lines, const char *name, int64_t number);

#endif
