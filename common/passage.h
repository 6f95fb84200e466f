/* The passage of one request through the proxy: what its stages share. */
#ifndef COMMON_PASSAGE_H
#define COMMON_PASSAGE_H

#include "common/delivery.h"
#include "common/forward.h"
#include "common/pair.h"
#include "common/proxy.h"
#include "common/upstream.h"

enum stage {
    STAGE_BEGINNING,
    STAGE_OPENING, /* the origin has to be asked */
    STAGE_CONNECTING,
    STAGE_SENDING,    /* the head of the request, to the origin */
    STAGE_UPLOADING,  /* its body */
    STAGE_AWAITING,   /* the head of the reply */
    STAGE_DELIVERING, /* it, to the client */
    STAGE_TUNNELLING, /* bytes in both directions */
};

/* What is only needed once the origin is asked. */
struct fetch {
    struct upstream upstream;
    struct delivery delivery;
    size_t sent;         /* of the lines */
    struct buffer lines; /* to the origin: the head, or what frames a chunk */
    char space[DELIVERY_HEAD_LIMIT];
};

struct passage {
    const struct proxy *proxy;
    enum stage stage;
    struct text host; /* of the origin; without the port */
    uint16_t port;
    struct text authority; /* of the origin, as Host says it */
    struct destination destination;
    int tried;      /* of its addresses */
    bool late;      /* one did not answer in time */
    int64_t origin; /* when the origin must have moved, in milliseconds */
    struct pair pair;
    struct fetch *fetch;

    /* The request's body. */
    struct content content;
    struct text piece; /* of it, that is being sent */
    bool uploaded;     /* all of it is sent, or there is none */
    bool client_slow;  /* it is the client that is waited for */

    /* A tunnel: who has ended. */
    bool client_ended, origin_ended;
};

/* Answers with a page that says what is wrong. */
enum progress passage_refuse(struct errand *errand, int status, const char *problem);

/* Waits for one or both sides, as pair.h says it. */
enum progress passage_wait(struct errand *errand, unsigned client, unsigned origin);
/* What to wait for after such a transfer. */
unsigned passage_wanted(enum transfer transfer);

/* Gives the origin its time again. */
void passage_renew(struct errand *errand);

/* The stage of a tunnel, and its beginning. */
enum progress tunnel_begin(struct errand *errand);
enum progress tunnel_relay(struct errand *errand);

#endif
