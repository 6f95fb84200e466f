/* What all stages of a passage do. A stage goes on to another one, be it of a room above it, by
 * relay_go_to alone: the table in passage.c does the rest. */
#ifndef COMMON_PROXY_RELAY_H
#define COMMON_PROXY_RELAY_H

#include "common/proxy/proxy_request.h"

enum service_progress relay_go_to(struct proxy_request *proxied, enum stage stage);

/* Answers with a page that says what is wrong. */
enum service_progress relay_refuse(struct service_call *call, int status, const char *problem);
/* The origin, or the way to it, has failed before anything of a reply went to the client: answers
 * so, unless there is a stored reply that may be used nevertheless. */
enum service_progress relay_fail(struct service_call *call, int status, const char *problem);

/* Gives the origin its time again. */
void relay_renew(struct service_call *call);
/* Waits for one or both sides, as pair.h says it. */
enum service_progress relay_wait(struct service_call *call, unsigned client, unsigned origin);
/* What to wait for after such a transfer. */
unsigned relay_wanted(enum transfer transfer);

/* Makes what is needed to ask the origin, or to deliver. False if there is no memory. */
bool relay_make_fetch(struct service_call *call);

/* Writes the line that begins a reply, and the field that says whether the connection stays open;
 * and whether it does. */
void relay_write_status(const struct service_call *call, int status, struct text reason,
                        struct buffer *lines);
void relay_write_persistence(const struct service_call *call, struct buffer *lines);
bool relay_goes_on(const struct service_call *call);

#endif
