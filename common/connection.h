/* A connection: a state machine with one step function. Whoever drives it waits for what it asks
 * for, by the means of its model: poll() in a process or thread of its own, or an event loop for
 * all. */
#ifndef COMMON_CONNECTION_H
#define COMMON_CONNECTION_H

#include "common/base/clock.h"
#include "common/exchange.h"
#include "common/net/transport.h"
#include "common/service.h"

enum connection_state {
    CONNECTION_READING,    /* the head of a request */
    CONNECTION_DISCARDING, /* its body */
    CONNECTION_RELAYING,   /* a service works on it that waits for others */
    CONNECTION_ANSWERING,  /* the service is asked, and the reply's head written to the output */
    CONNECTION_ANSWERED,   /* the reply is gone, or whole in the output */
    CONNECTION_SENDING,    /* the output, and then the body */
    CONNECTION_FINISHING,  /* all is said */
    CONNECTION_LINGERING,  /* what the client still sends is thrown away */
    CONNECTION_ENDED,
};

struct connection {
    struct transport transport;
    const struct service_context *context;
    struct exchange *exchange; /* NULL: it was taken back */
    enum connection_state state;
    enum connection_state next; /* after SENDING */
    bool idle;                  /* between two requests */
    bool drained;               /* the last read took all there was */
    bool answered;              /* the service has said what the reply is */
    bool in_call;               /* a service works in steps, and has to be let go of */
    bool closing;               /* no further request will be read */
    bool client_closes;         /* the client asked for that, and will not send more */
    uint64_t sent;              /* bytes, in all */
    uint64_t taken;             /* of these, when the write deadline was set */
    uint64_t turn;              /* bytes moved in this step */
    struct moment now;          /* kept by the driver */
    int descriptor;             /* that it waits for */
    int64_t deadline;           /* until when it does, in monotonic milliseconds */
    int64_t request_deadline;   /* for the whole request to arrive */
    struct tally tally;         /* for the scoreboard: the driver adds it there */
};

/* What a step ends with. */
enum need {
    NEED_NOTHING, /* it has ended */
    NEED_READ,    /* the descriptor readable */
    NEED_WRITE,   /* the descriptor writable */
};

/* Takes a socket, or a datagram where the site has them, and no exchange yet. */
void connection_open(struct connection *connection, const struct service_context *context,
                     int socket, struct moment now);
/* Lends it an exchange, which is the driver's, uninitialised. Without one it takes no step. */
void connection_lend(struct connection *connection, struct exchange *exchange);
/* Takes the exchange back, where there is nothing in it that has to be kept; or NULL. */
struct exchange *connection_reclaim(struct connection *connection);
/* Goes as far as it can without waiting. What it waits for then is its `descriptor`. */
enum need connection_step(struct connection *connection);
/* Its deadline has passed: a last word where one is due. Then step again. */
void connection_expire(struct connection *connection);
void connection_close(struct connection *connection);

#endif
