/* Messages with descriptors, through local sockets that keep the bounds of messages. */
#ifndef COMMON_BASE_FD_MESSAGE_H
#define COMMON_BASE_FD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The most descriptors in one message. */
#define FD_MESSAGE_LIMIT 64

struct fd_message {
    int descriptors[FD_MESSAGE_LIMIT];
    int count;
    pid_t sender; /* if the receiver has set SO_PASSCRED; else 0 */
};

/* Sends data and descriptors, which stay open here. False, with errno set, on failure. */
bool fd_message_send(int socket, const void *data, size_t size, const int *descriptors, int count);

/* The same to a receiver that is not trusted: it fails where it would have to wait. */
bool fd_message_send_at_once(int socket, const void *data, size_t size, const int *descriptors,
                             int count);

/* Receives a message of up to `limit` bytes, and says how many it has. False at the end of all
 * messages, with errno 0, and on failure. A message without bytes is not the end if it has
 * descriptors or its sender. */
bool fd_message_receive(int socket, void *data, size_t limit, size_t *size,
                        struct fd_message *message);

/* Closes the descriptors that came with a message. */
void fd_message_close(struct fd_message *message);
/* The same where the sender is not trusted: it may have set SO_LINGER, so that close() would
 * wait. */
void fd_message_close_at_once(struct fd_message *message);

#endif
