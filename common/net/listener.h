/* The sockets that connections arrive at. */
#ifndef COMMON_NET_LISTENER_H
#define COMMON_NET_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#define LISTENER_LIMIT   16                   /* of addresses */
#define LISTENER_SOCKETS (2 * LISTENER_LIMIT) /* of TCP, and of UDP */

struct listener {
    int sockets[LISTENER_SOCKETS]; /* they do not block */
    int count;
    int streams; /* of these are TCP; those behind are UDP */
    int turn;    /* which socket connections are taken from now */
    uint16_t port;
};

/* Whether it is a numeric address, of IPv4 or IPv6. */
bool listener_is_address(const char *text);

/* Listens at the addresses; without any, at the loopback addresses of IPv4 and, if there is one, of
 * IPv6. Port 0 takes a free one, the same for all. On failure it says why, and returns false. With
 * `datagrams`, UDP as well. Only a listener opened with `twins` can have one. */
bool listener_open(struct listener *listener, const char *const *addresses, int count,
                   uint16_t port, int backlog, bool twins, bool datagrams);
/* Listens at the same addresses and port with queues of its own: the kernel chooses between the
 * two. */
bool listener_twin(struct listener *twin, const struct listener *first, int backlog);

/* The next connection of the socket whose turn it is, or datagram (see datagram.h); -1 with errno
 * (EAGAIN: there is none). It blocks where it is not told otherwise, but a read for no longer than
 * LISTENER_PATIENCE milliseconds. */
#define LISTENER_PATIENCE 100
int listener_accept(struct listener *listener);

/* For a crew: any number of its workers may call listener_await() then, */
bool listener_share(struct listener *listener);
/* each with a descriptor of its own, of which a connection wakes one; -1, with errno, if there is
 * none to be had. */
int listener_watch(const struct listener *listener);
/* The next connection; -1 with errno: EAGAIN when none has come for so many milliseconds. Where
 * there is one socket alone, workers block in accept() itself, in the order in which they came;
 * that never takes longer than LISTENER_PATIENCE. */
int listener_await(struct listener *listener, int events, int milliseconds);

/* Lets no further client begin to connect; those who have begun are still accepted. False if the
 * kernel does not allow that. */
bool listener_refuse(struct listener *listener);
/* Closes all but what datagrams are answered from; */
void listener_leave(struct listener *listener);
/* and that as well. */
void listener_close(struct listener *listener);

/* Writes "SCHEME://ADDRESS:PORT/" of the first socket. */
void listener_url(const struct listener *listener, const char *scheme, char *url, int size);

#endif
