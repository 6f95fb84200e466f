/* The sockets that connections arrive at. */
#ifndef COMMON_LISTENER_H
#define COMMON_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#define LISTENER_LIMIT 16

struct listener {
    int sockets[LISTENER_LIMIT]; /* they do not block */
    int count;
    int turn; /* which socket connections are taken from now */
    uint16_t port;
};

/* Whether it is a numeric address, of IPv4 or IPv6. */
bool listener_is_address(const char *text);

/* Listens at the addresses; without any, at the loopback addresses of IPv4 and, if there is one, of
 * IPv6. Port 0 takes a free one, the same for all. On failure it says why, and returns false. */
bool listener_open(struct listener *listener, const char *const *addresses, int count,
                   uint16_t port, int backlog);

/* The next connection of the socket whose turn it is; -1 with errno (EAGAIN: there is none). It
 * blocks where it is not told otherwise, but a read for no longer than LISTENER_PATIENCE
 * milliseconds. */
#define LISTENER_PATIENCE 100
int listener_accept(struct listener *listener);

/* Lets no further client begin to connect; those who have begun are still accepted. False if the
 * kernel does not allow that. */
bool listener_refuse(struct listener *listener);
void listener_close(struct listener *listener);

/* Writes "http://ADDRESS:PORT/" of the first socket. */
void listener_url(const struct listener *listener, char *url, int size);

#endif
