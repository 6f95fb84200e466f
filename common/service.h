/* The interface between a connection and a service, which answers its requests. */
#ifndef COMMON_SERVICE_H
#define COMMON_SERVICE_H

#include "common/base/clock.h"
#include "common/http/request.h"
#include "common/http/response.h"
#include "common/net/transport.h"
#include "common/scoreboard.h"

/* A step of a connection ends when it has moved this many bytes, so that others are served too. */
#define STEP_BYTES_LIMIT (4 * 1024 * 1024)
/* Likewise, when it has sent the responses to this many requests, and more have arrived. */
#define STEP_REQUESTS_LIMIT 64

enum protocol {
    PROTOCOL_SIMPLE,     /* one HTTP/1.0 response for each connection */
    PROTOCOL_PERSISTENT, /* keep-alive, one write for each response */
    PROTOCOL_PIPELINED,  /* keep-alive, one write for all requests that have arrived */
};

struct service_context;

/* A request whose service must wait for others. The connection lends it the client until the
 * service is done. */
struct service_call {
    const struct service_context *context;
    const struct request *request;
    struct transport *client;
    struct response *response; /* filled in, unless the service itself sends the response */
    /* A service that takes long sets it again. */
    struct moment now;
    bool output_pending;   /* earlier responses have not left yet */
    bool keeps_connection; /* further requests may follow; once false, it stays false */
    bool client_gone;      /* nobody reads the response any more */
    struct text received;  /* bytes behind the head that the service has not taken yet */
    char *input_space;     /* the service reads more of them to here when it has taken all */
    size_t input_space_size;
    void *work;          /* the service's own state; NULL before the first step */
    uint64_t sent;       /* bytes sent to the client in this step */
    uint64_t taken;      /* bytes received from it in this step */
    uint64_t body_bytes; /* bytes of the body sent so far */

    /* The wait after SERVICE_WAITS. */
    int descriptor;          /* -1: the deadline alone */
    bool to_write;           /* until the descriptor is writable, not readable */
    int64_t deadline;        /* in monotonic milliseconds */
    bool awaits_client;      /* for the client, too: the connection can be asked to give way */
    int64_t client_deadline; /* the client must have read something by then; 0: no limit */
};

enum service_progress {
    SERVICE_WAITS,       /* for the descriptor or the deadline */
    SERVICE_NEEDS_FLUSH, /* earlier responses must be sent first */
    SERVICE_RESPONDS,    /* the connection sends `response` */
    SERVICE_DONE,        /* the service has sent the response; `response` has its status */
    SERVICE_FAILED,      /* the response broke off */
    SERVICE_CONTINUES,   /* within a service only: its next stage runs now */
};

/* The counters of a service, beside those of responses, in the statistics and at the end of the
 * server. */
struct service_counters {
    const char *title;
    const char *names[SCOREBOARD_SERVICE_COUNTERS]; /* "_" stands for a blank; NULL: no more */
};

struct service {
    const char *name;
    const struct service_counters *counters; /* NULL: none */
    int descriptors;                         /* needed by a connection, beside those of its model */
    int kib;                                 /* of memory, in the same way */
    /* Fills in the response at once. NULL if the service works in steps: */
    void (*answer)(const struct service_context *context, const struct request *request,
                   struct moment now, struct response *response);
    /* Goes on as far as it can without waiting, and reads the body of the request itself. */
    enum service_progress (*step)(struct service_call *call);
    /* Goes on after the deadline has passed. */
    enum service_progress (*expire)(struct service_call *call);
    bool watches_client;    /* it waits at the client's socket beside others: no ring can for it */
    const char *broken_off; /* the problem that a client is told after SERVICE_FAILED */
    /* Frees `work`. */
    void (*end)(struct service_call *call);
};

struct tls;
struct access_log;
struct trace;

struct service_context {
    const char *server; /* the name of the program */
    const struct service *service;
    const void *state; /* the service's own state */
    enum protocol protocol;
    const struct transport_kind *transport;
    struct tls *tls;                                  /* NULL: plain */
    enum scheme scheme;                               /* that targets may name */
    struct access_log *log;                           /* NULL: none */
    int request_timeout, idle_timeout, write_timeout; /* milliseconds */
    struct scoreboard *board;
    int slot_count;      /* of the board */
    struct trace *trace; /* NULL: none */
};

#endif
