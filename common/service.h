/* A service answers requests: the files below a root, generated documents, or a proxy's origins.
 * This is all that a connection and a service know of each other. */
#ifndef COMMON_SERVICE_H
#define COMMON_SERVICE_H

#include "common/base/clock.h"
#include "common/http/request.h"
#include "common/http/response.h"
#include "common/net/transport.h"
#include "common/scoreboard.h"

enum protocol {
    PROTOCOL_SIMPLE,     /* one HTTP/1.0 reply a connection */
    PROTOCOL_PERSISTENT, /* keep-alive, a write for each reply */
    PROTOCOL_PIPELINED,  /* keep-alive, one write for all requests that have arrived */
};

struct service_context;

/* A request that a service cannot answer without waiting for others. The connection hands it over,
 * with the client, until the service is done. */
struct service_call {
    const struct service_context *context;
    const struct request *request;
    struct transport *client;
    struct response *response; /* to be filled in, unless the service sends its reply itself */
    struct moment now;
    bool output_pending;   /* earlier responses have not left yet */
    bool keeps_connection; /* further requests may follow; once false, it stays false */
    bool client_gone;      /* nobody reads the response any more */
    struct text received;  /* bytes behind the head that the service has not taken yet */
    char *input_space;     /* the service reads more of them to here when it has taken all */
    size_t input_space_size;
    void *work;          /* the service's own state; NULL before the first step */
    uint64_t sent;       /* bytes sent to the client in this step */
    uint64_t body_bytes; /* bytes of the body sent so far */

    /* What it waits for. */
    int descriptor;          /* -1: for the deadline alone */
    bool to_write;           /* until it is writable, not readable */
    int64_t deadline;        /* in monotonic milliseconds */
    int64_t client_deadline; /* by which the client must have taken something; 0: it need not */
};

enum service_progress {
    SERVICE_WAITS,       /* for the descriptor or the deadline */
    SERVICE_NEEDS_FLUSH, /* earlier responses must be sent first */
    SERVICE_RESPONDS,    /* the connection sends `response` */
    SERVICE_DONE,        /* the service has sent the response; `response` has its status */
    SERVICE_FAILED,      /* the response broke off */
    SERVICE_CONTINUES,   /* within a service only: its next stage runs now */
};

/* A service fills in a reply. It does not know the model. */
struct service {
    const char *name;
    int descriptors; /* that a connection may need beside those that files take */
    /* At once. */
    void (*answer)(const struct service_context *context, const struct request *request,
                   struct moment now, struct response *response);
    /* Or, where it has to wait for others, in steps. It reads the request's body itself. */
    enum service_progress (*step)(struct service_call *call);
    /* Its deadline has passed. */
    enum service_progress (*expire)(struct service_call *call);
    /* Lets go of what it holds. */
    void (*end)(struct service_call *call);
};

struct tls;

struct service_context {
    const struct service *service;
    const void *state; /* the service's own */
    enum protocol protocol;
    const struct transport_kind *transport;
    struct tls *tls;                                  /* NULL: none */
    enum scheme scheme;                               /* of the documents */
    int log;                                          /* -1: none */
    int request_timeout, idle_timeout, write_timeout; /* milliseconds */
    struct scoreboard *board;
};

#endif
