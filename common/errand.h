/* An errand: a request that a service cannot answer without waiting for others. Its connection
 * hands it over, with the client, until the errand is done. */
#ifndef COMMON_ERRAND_H
#define COMMON_ERRAND_H

#include "common/http/date.h"
#include "common/http/request.h"
#include "common/http/response.h"
#include "common/net/transport.h"

struct site;

struct errand {
    const struct site *site;
    const struct request *request;
    struct transport *client;
    struct response *response; /* to be filled in, unless the service sends its reply itself */
    struct moment now;
    bool behind;          /* earlier replies are not gone yet */
    bool stays;           /* the connection can go on after this; false: it cannot, for good */
    bool client_gone;     /* nobody takes the reply any more */
    struct text received; /* what the client sent behind the head, and nobody has taken yet */
    char *room;           /* where more of that can be read to, once it is taken */
    size_t room_size;
    void *work;          /* the service's own; NULL before the first step */
    uint64_t sent;       /* bytes to the client */
    uint64_t body_bytes; /* of these, the body's */

    /* What it waits for. */
    int descriptor;          /* -1: for the deadline alone */
    bool to_write;           /* until it is writable, not readable */
    int64_t deadline;        /* in monotonic milliseconds */
    int64_t client_deadline; /* by which the client must have taken something; 0: it need not */
};

enum progress {
    ERRAND_WAITS,
    ERRAND_BEHIND,   /* the earlier replies have to go first */
    ERRAND_ANSWERED, /* `response` says what is to be replied */
    ERRAND_DONE,     /* the reply is gone; `response` has its status */
    ERRAND_FAILED,   /* it broke off */
    ERRAND_GOES_ON,  /* within a service: its next stage has its turn */
};

#endif
