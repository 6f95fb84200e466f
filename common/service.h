/* A service answers requests: the files below a root, generated documents, or a proxy's origins.
 * This is all that a connection and a service know of each other. */
#ifndef COMMON_SERVICE_H
#define COMMON_SERVICE_H

#include "common/base/clock.h"
#include "common/files/file_cache.h"
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

enum service_progress {
    SERVICE_WAITS,
    SERVICE_BEHIND,   /* the earlier replies have to go first */
    SERVICE_ANSWERED, /* `response` says what is to be replied */
    SERVICE_DONE,     /* the reply is gone; `response` has its status */
    SERVICE_FAILED,   /* it broke off */
    SERVICE_GOES_ON,  /* within a service: its next stage has its turn */
};

/* A service fills in a reply. It does not know the model. */
struct service {
    const char *name;
    const char *serves; /* in words; NULL: what is below the root, which others do without */
    bool connects;      /* to others */
    int descriptors;    /* that a connection may need beside those that files take */
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

extern const struct service service_files;
extern const struct service service_generated;
extern const struct service service_proxy;

struct proxy;

struct service_context {
    const struct service *service;
    enum protocol protocol;
    int root; /* a directory; -1: none is needed */
    bool list;
    int max_age; /* of constant documents, in seconds */
    const struct transport_kind *transport;
    bool datagrams;                                   /* may come instead of connections */
    struct tls *tls;                                  /* NULL: none */
    enum scheme scheme;                               /* of the documents */
    struct file_cache *file_cache;                    /* NULL: none */
    int log;                                          /* -1: none */
    int request_timeout, idle_timeout, write_timeout; /* milliseconds */
    const struct proxy *proxy;                        /* NULL: none */
    struct scoreboard *board;
};

#endif
