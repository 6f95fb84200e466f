/* How the origin is asked. */
#ifndef COMMON_PROXY_FETCH_H
#define COMMON_PROXY_FETCH_H

#include "common/proxy/proxy_request.h"

/* The stages: opening, */
enum progress asking_open(struct errand *errand);
/* connecting, */
enum progress asking_connect(struct errand *errand);
/* sending the head of the request, */
enum progress asking_send(struct errand *errand);
/* awaiting the head of the reply, */
enum progress asking_await(struct errand *errand);
/* and passing on what comes before that. */
enum progress asking_hint(struct errand *errand);

/* Begins to connect to the next address. */
enum progress asking_try_next(struct errand *errand);
/* Asks once more; without the proxy's own conditions, once it has dropped the entry. */
enum progress asking_again(struct errand *errand);
/* Sends the lines; what stands in the way of that may be a reply that came early. */
enum transfer asking_send_lines(struct errand *errand);
/* What to do once the head of a reply has come, or will not. */
enum progress asking_take_head(struct errand *errand, enum transfer transfer);

#endif
