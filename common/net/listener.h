/* The listening sockets of a server. */
#ifndef COMMON_NET_LISTENER_H
#define COMMON_NET_LISTENER_H

#include "common/net/address.h"

#include <stdbool.h>
#include <stdint.h>

#define LISTENER_LIMIT   16                   /* addresses */
#define LISTENER_SOCKETS (2 * LISTENER_LIMIT) /* TCP and UDP */

struct listener {
    int sockets[LISTENER_SOCKETS]; /* nonblocking; first those of TCP, then those of UDP */
    int count;
    int streams; /* how many of them are TCP */
    int next;    /* the socket that listener_accept() takes from */
    uint16_t port;
    bool adopted; /* other processes may listen at the sockets, too, and go on after a stop */
};

/* Accepts the next connection of the socket `next`, or receives its next datagram (datagram.h);
 * returns the descriptor, or -1 with errno (EAGAIN: there is none). Reads of the descriptor block
 * for at most LISTENER_PATIENCE milliseconds unless they are told not to. */
#define LISTENER_PATIENCE 100
int listener_accept(struct listener *listener, union address *client);

/* From now on a client waits in the kernel until its first bytes have come, at most for about
 * LISTENER_DEFER seconds. One that is gone by then is never accepted: an overload leaves many. */
#define LISTENER_DEFER 1
bool listener_defer(const struct listener *listener);

/* Prepares the listener for several workers. */
bool listener_share(struct listener *listener);
/* Makes an epoll descriptor for one worker to wait at, until a client comes or `stop` is readable;
 * -1 with errno. A connection wakes one of the workers. */
int listener_watch(const struct listener *listener, int stop);
/* Waits at that descriptor and accepts the next connection; -1 with errno, EAGAIN if none came in
 * time, EINTR if a signal came first, ECANCELED if the stop did. For LISTENER_PATIENCE at a single
 * socket it waits in accept() itself, which serves the workers in the order of their arrival. */
int listener_await(struct listener *listener, int events, int milliseconds, union address *client);

/* Refuses new clients; those that are connecting are still accepted. False if the kernel does not
 * allow that, or another process shall accept the new clients. */
bool listener_refuse(struct listener *listener);
/* The same where the kernel allows no filter, for TCP alone: the kernel drops packets with a hop
 * limit below the highest, and so those that begin a connection. A connection that is being made
 * inherits this: listener_receive_from() must follow each accept. */
bool listener_refuse_by_hop_limit(struct listener *listener);
/* Takes back the options by which a worker, which has the sockets as well, could keep clients away
 * after its end: hop limits, and a close that waits. */
void listener_restore(const struct listener *listener);
void listener_receive_from(int socket, const union address *client);
/* Another server goes on at the sockets: this one will only close them. */
void listener_hand_over(struct listener *listener);
/* Returns true if no client and no datagram waits at any socket. */
bool listener_is_empty(const struct listener *listener);
/* Returns how many clients and datagrams wait; all datagrams of a UDP socket count as one. */
int listener_waiting(const struct listener *listener);
/* Ends listening at the TCP sockets, in all processes that share them: the port is free, and an
 * accept fails with ESHUTDOWN. */
void listener_shut_down(const struct listener *listener);
/* Closes the TCP sockets in this process alone. */
void listener_leave_streams(struct listener *listener);
/* The same, in a process that does not use the listener any more: it writes to no memory. */
void listener_drop_streams(const struct listener *listener);
/* Ends listening, and closes the TCP sockets: responses are still sent from those of UDP. */
void listener_close_streams(struct listener *listener);
void listener_close(struct listener *listener);

#endif
