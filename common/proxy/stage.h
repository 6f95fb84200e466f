/* The stages of a proxied request, and how one goes to the next. The table in proxy_service.c says
 * which function runs in each. */
#ifndef COMMON_PROXY_STAGE_H
#define COMMON_PROXY_STAGE_H

#include "common/service.h"

enum stage {
    STAGE_BEGIN,        /* checks the request, and finds its origin */
    STAGE_LOOKUP,       /* looks for an entry in the cache, or waits for another fetch of it */
    STAGE_SERVE_CACHED, /* responds with the entry */
    STAGE_SERVE_PART,   /* responds with a part of an entry, or finds out what it lacks */
    STAGE_FOLLOW,       /* sends an entry that another request is storing */
    STAGE_SERVE_STALE,  /* sends a stale entry, before the origin is asked about it */
    STAGE_OPEN,         /* writes the head for the origin, and begins to connect */
    STAGE_CONNECT,      /* waits for the connection */
    STAGE_SEND_HEAD,    /* sends the head of the request */
    STAGE_SEND_BODY,    /* sends its body */
    STAGE_AWAIT_HEAD,   /* waits for the head of the response */
    STAGE_SEND_INTERIM, /* sends an interim response (1xx) to the client */
    STAGE_CHOOSE,       /* chooses between the response and the entry */
    STAGE_SEND,         /* sends the response to the client, and stores it */
    STAGE_TUNNEL,       /* moves bytes in both directions */
    STAGE_FAIL,         /* responds with the entry after a failure, or with an error */
};

/* The first member of the struct that `work` of a call points to. */
struct stage_state {
    enum stage stage;
    int status; /* of the error, for STAGE_FAIL */
    const char *problem;
};

/* Goes to a stage, which runs at once. */
enum service_progress stage_go_to(struct service_call *call, enum stage stage);
/* Makes an error the response. */
enum service_progress stage_refuse(struct service_call *call, int status, const char *problem);
/* Goes to STAGE_FAIL with an error: the origin has failed before any of its response went to the
 * client. */
enum service_progress stage_fail(struct service_call *call, int status, const char *problem);

#endif
