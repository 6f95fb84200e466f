/* The waits of the accepting process: for clients, a free seat, scarce resources, and signals. */
#ifndef COMMON_ACCEPTOR_H
#define COMMON_ACCEPTOR_H

#include "common/server_state.h"

/* Opens the epoll descriptor for these waits. False, with errno set, on failure. */
bool acceptor_open(struct server *server);

/* Handles signals, and notes clients that have come, without waiting. */
void acceptor_check(struct server *server);
/* Sleeps until a connection ends, a signal arrives, or the time is over (-1: no limit). */
void acceptor_sleep(struct server *server, int milliseconds);

/* Waits until a client comes; at a stop, for as long as one may be on its way. Returns false if no
 * client will come any more. */
bool acceptor_wait_for_client(struct server *server);
/* Waits until a connection ends; where a process or thread serves each connection, asks those that
 * wait longest to end. */
void acceptor_wait_for_seat(struct server *server);
/* Waits until resources may be free again: until a connection ends, but not for long. */
void acceptor_wait_for_resources(struct server *server);

/* Lets no new client connect: a stop was requested. */
void acceptor_refuse(struct server *server);
/* Returns true if the kernel then still holds back a client that has said nothing yet. */
bool acceptor_has_silent_client(struct server *server);
/* Lets the socket of an accepted connection receive from its client: at a stop, the listeners may
 * have refused new clients in a way that their sockets inherit. */
void acceptor_welcome(const struct server *server, int socket, const union address *client);
/* For a process that serves while it accepts: frees the port, once it has accepted those that wait
 * and those that are on their way. */
void acceptor_gather(struct server *server);
/* Accepts the next connection, or takes one that was accepted before; -1 with errno. */
int acceptor_take(struct server *server, union address *client);

/* If no client comes for this long, none is on its way to a listener that refuses new ones. */
#define ACCEPTOR_QUIET_MILLISECONDS 100
/* When descriptors, memory or processes are scarce, the next attempt follows after this long, or
 * when a connection ends. */
#define ACCEPTOR_SCARCE_MILLISECONDS 100

/* Warns that a resource is scarce (errno says which): at most twice a second in all processes. */
void acceptor_warn_scarce(struct server *server, const char *what);

/* Returns true if there are, or were a moment ago, so many connections that they may use up the
 * memory. */
static inline bool acceptor_memory_is_tight(const struct server *server)
{
    return server->now.milliseconds < server->memory.tight_until;
}

/* Returns true if there is no seat for another connection, or no memory. */
static inline bool acceptor_is_full(const struct server *server)
{
    return atomic_load(&server->board->active) >= (int64_t)server->limit ||
           (acceptor_memory_is_tight(server) && memory_gauge_is_low(&server->memory.gauge));
}

/* Returns true if the deadline of a stop passed at least `margin` milliseconds ago. */
static inline bool acceptor_is_over(const struct server *server, int64_t margin)
{
    int64_t deadline = server_deadline(server);

    return deadline != 0 && clock_now().milliseconds >= deadline + margin;
}

/* Returns true as long as clients are to be accepted, also after a stop was requested. */
static inline bool acceptor_goes_on(const struct server *server)
{
    const struct gathered *gathered = &server->accepting.gathered;

    return !acceptor_is_over(server, 0) && !atomic_load(&server->board->handed_over) &&
           !(gathered->closed && gathered->next == gathered->count);
}

#endif
