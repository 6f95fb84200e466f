/* The listening sockets of a server. */
#ifndef COMMON_NET_LISTENER_H
#define COMMON_NET_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#define LISTENER_LIMIT   16                   /* addresses */
#define LISTENER_SOCKETS (2 * LISTENER_LIMIT) /* TCP and UDP */

struct listener {
    int sockets[LISTENER_SOCKETS]; /* nonblocking; the UDP sockets stand behind those of TCP */
    int count;
    int streams; /* how many of them are TCP */
    int next;    /* the socket that listener_accept() takes from */
    uint16_t port;
    bool adopted; /* others listen at the sockets, too, and go on when this server stops */
};

/* Returns true if the text is a numeric address of IPv4 or IPv6. */
bool listener_is_address(const char *text);

/* Listens at the addresses; without any, at 127.0.0.1 and, if there is IPv6, at ::1. Port 0 takes a
 * free one, the same for all. With `datagrams` it opens UDP sockets too. Only a listener opened
 * with `twins` can have twins. On failure it prints why and returns false. */
bool listener_open(struct listener *listener, const char *const *addresses, int count,
                   uint16_t port, int backlog, bool twins, bool datagrams);
/* Takes so many sockets that listen already, the first of which is `first`. Addresses and port are
 * theirs. On failure it prints why and returns false. */
bool listener_adopt(struct listener *listener, int first, int count, bool twins, bool datagrams);
/* Opens a second listener at the same addresses and port (SO_REUSEPORT): the kernel chooses between
 * the two. */
bool listener_twin(struct listener *twin, const struct listener *first, int backlog);

/* Accepts the next connection of the socket `next`, or receives its next datagram (datagram.h);
 * returns the descriptor, or -1 with errno (EAGAIN: there is none). Reads of the descriptor block
 * for at most LISTENER_PATIENCE milliseconds unless they are told not to. */
#define LISTENER_PATIENCE 100
int listener_accept(struct listener *listener);

/* For several workers at one listener. Prepares the listener; */
bool listener_share(struct listener *listener);
/* makes an epoll descriptor for one worker: a connection wakes one of them (-1 with errno); */
int listener_watch(const struct listener *listener);
/* and accepts the next connection; -1 with errno, EAGAIN if none came in that time. At a single
 * socket, workers block in accept() itself, which serves them in order of arrival and returns after
 * LISTENER_PATIENCE at the latest. */
int listener_await(struct listener *listener, int events, int milliseconds);

/* Refuses new clients; those that are connecting are still accepted. False if the kernel does not
 * allow that, or the clients shall wait for another server. */
bool listener_refuse(struct listener *listener);
/* Returns true if no client and no datagram waits at any socket. */
bool listener_is_empty(const struct listener *listener);
/* Ends listening at the TCP sockets, in all processes that share them: the port is free, and an
 * accept fails with ESHUTDOWN. */
void listener_shut_down(const struct listener *listener);
/* Closes the TCP sockets: responses are still sent from those of UDP. */
void listener_close_streams(struct listener *listener);
void listener_close(struct listener *listener);

/* Writes "SCHEME://ADDRESS:PORT/" of the first socket. */
void listener_url(const struct listener *listener, const char *scheme, char *url, int size);

#endif
