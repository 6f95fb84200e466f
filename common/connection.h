/* A connection is a state machine with one step function, which does not wait (but see
 * `patient` in transport.h). The caller waits for the descriptor that a step asks for: by poll() in
 * a process or thread for each connection, or in an event loop for all. */
#ifndef COMMON_CONNECTION_H
#define COMMON_CONNECTION_H

#include "common/base/clock.h"
#include "common/exchange.h"
#include "common/net/transport.h"
#include "common/service.h"

enum connection_state {
    CONNECTION_READING,    /* reads the head of a request */
    CONNECTION_DISCARDING, /* reads its body and throws it away */
    CONNECTION_IN_SERVICE, /* a service that must wait for others works on the request */
    CONNECTION_RESPONDING, /* gets the response and writes its head to the output */
    CONNECTION_RESPONDED,  /* the response has been sent, or all of it is in the output */
    CONNECTION_SENDING,    /* sends the output, and then the body */
    CONNECTION_FINISHING,  /* nothing more will be sent */
    CONNECTION_LINGERING,  /* reads what the client still sends and throws it away */
    CONNECTION_ENDED,
};

struct connection {
    struct transport transport;
    const struct service_context *context;
    struct exchange *exchange; /* NULL: none is lent */
    enum connection_state state;
    enum connection_state next; /* the state after SENDING */
    bool idle;                  /* between two requests */
    bool drained;               /* the last read took everything there was */
    bool has_response;          /* the response is filled in */
    bool blocked;               /* the client was slower than the writes of this response */
    bool in_call;               /* a call of the service is open */
    bool closing;               /* no further request will be read */
    bool client_closes;         /* the client asked for the end, and sends no more */
    uint32_t number;            /* in the trace; 0: none */
    uint64_t sent;              /* bytes sent in all */
    uint64_t acknowledged;      /* bytes the client had read when the write deadline was set */
    uint64_t received;          /* bytes received in all */
    uint64_t step_bytes;        /* bytes moved in this step */
    int64_t yields_from;        /* since when others wait for its end; 0: none do */
    int64_t pace_from;          /* from when it is measured, in monotonic milliseconds */
    uint64_t pace_bytes;        /* bytes sent and received then */
    struct moment now;          /* the caller keeps it up to date */
    int descriptor;             /* the one to wait for */
    unsigned step_requests;     /* requests whose responses are complete in this step */
    int64_t deadline;           /* of this wait, in monotonic milliseconds */
    int64_t request_deadline;   /* for the whole request to arrive */
    struct tally tally;         /* counts that the caller adds to the scoreboard */
};

/* The result of a step. */
enum need {
    NEED_NOTHING, /* the connection has ended */
    NEED_READ,    /* wait until the descriptor is readable */
    NEED_WRITE,   /* wait until the descriptor is writable */
};

/* Begins with the descriptor of a socket or, with --udp, of a datagram. */
void connection_open(struct connection *connection, const struct service_context *context,
                     int socket, struct moment now);
/* Lends the connection an exchange, which may be uninitialised memory. Each step needs one. */
void connection_lend(struct connection *connection, struct exchange *exchange);
/* Takes the exchange back if nothing in it is needed any more; else returns NULL. */
struct exchange *connection_reclaim(struct connection *connection);
/* Goes as far as it can without waiting. Then wait for `descriptor` until `deadline`. */
enum need connection_step(struct connection *connection);
/* Tells the connection that its deadline has passed. Then step again. */
void connection_expire(struct connection *connection);
void connection_close(struct connection *connection);

/* Tells the connection whether other clients need its seat. If they do, it closes after its next
 * response. A client that never makes its connection wait is not asked to give way; where no seat
 * is free, it may keep the connection for so long. */
#define CONNECTION_TURN_MILLISECONDS 1000
void connection_yield(struct connection *connection, bool needed);

/* How long the client has kept the connection waiting, for a server that needs its seat: the
 * connection with the lowest number gives way first. First come idle connections, then those whose
 * request has not arrived, then those whose client sends a body or reads a response; of each kind
 * the oldest first. 0: it does not wait for its client. seats.h uses it. */
int64_t connection_standing(const struct connection *connection, enum need need);
/* Ends the connection, since its seat is needed. False if its client makes progress. */
bool connection_give_way(struct connection *connection);

#endif
