/* What is served, and by which rules: all that a connection knows of its server. */
#ifndef COMMON_SERVICE_H
#define COMMON_SERVICE_H

#include "common/errand.h"
#include "common/files/file_cache.h"
#include "common/http/date.h"
#include "common/http/request.h"
#include "common/http/response.h"
#include "common/net/transport.h"
#include "common/scoreboard.h"

enum protocol {
    PROTOCOL_SIMPLE,     /* one HTTP/1.0 reply a connection */
    PROTOCOL_PERSISTENT, /* keep-alive, a write for each reply */
    PROTOCOL_PIPELINED,  /* keep-alive, one write for all requests that have arrived */
};

struct site;

/* A service fills in a reply. It does not know the model. */
struct service {
    const char *name;
    const char *serves; /* in words; NULL: what is below the root, which others do without */
    bool connects;      /* to others */
    int descriptors;    /* that a connection may need beside those that files take */
    /* At once. */
    void (*answer)(const struct site *site, const struct request *request, struct moment now,
                   struct response *response);
    /* Or, where it has to wait for others, in steps. It reads the request's body itself. */
    enum progress (*step)(struct errand *errand);
    /* Its deadline has passed. */
    enum progress (*expire)(struct errand *errand);
    /* Lets go of what it holds. */
    void (*end)(struct errand *errand);
};

extern const struct service service_files;
extern const struct service service_sized;
extern const struct service service_proxy;

struct proxy;

struct site {
    const struct service *service;
    enum protocol protocol;
    int root; /* a directory; -1: none is needed */
    bool list;
    int max_age; /* of constant documents, in seconds */
    const struct transport_kind *transport;
    bool datagrams;                                   /* may come instead of connections */
    struct tls *tls;                                  /* NULL: none */
    enum scheme scheme;                               /* of the documents */
    struct shelf *shelf;                              /* NULL: none */
    int log;                                          /* -1: none */
    int request_timeout, idle_timeout, write_timeout; /* milliseconds */
    const struct proxy *proxy;                        /* NULL: none */
    struct scoreboard *board;
};

#endif
