/* Sends and receives messages with descriptors. */
#include "common/base/fd_message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The space in a message that holds its descriptors and its sender. */
union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(FD_MESSAGE_LIMIT * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

static bool send_message(int socket, const void *data, size_t size, const int *descriptors,
                         int count, int flags)
{
    size_t length = (size_t)count * sizeof *descriptors;
    struct iovec bytes = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    union control control;
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};

    if (count > 0) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(length);
        memset(&control, 0, CMSG_SPACE(length));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(&control.header), descriptors, length);
    }
    while (sendmsg(socket, &header, MSG_NOSIGNAL | flags) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

bool fd_message_send(int socket, const void *data, size_t size, const int *descriptors, int count)
{
    return send_message(socket, data, size, descriptors, count, 0);
}

bool fd_message_send_at_once(int socket, const void *data, size_t size, const int *descriptors,
                             int count)
{
    return send_message(socket, data, size, descriptors, count, MSG_DONTWAIT);
}

/* The kernel passes more than FD_MESSAGE_LIMIT if the space for a sender is free. Those are closed.
 */
static void take_descriptors(struct fd_message *message, const unsigned char *data, size_t count)
{
    int descriptor;

    for (size_t i = 0; i < count; i++) {
        memcpy(&descriptor, data + i * sizeof descriptor, sizeof descriptor);
        if (message->count < FD_MESSAGE_LIMIT)
            message->descriptors[message->count++] = descriptor;
        else
            close(descriptor);
    }
}

static void take(struct fd_message *message, struct cmsghdr *part)
{
    size_t length = part->cmsg_len - CMSG_LEN(0);
    struct ucred sender;

    if (part->cmsg_type == SCM_RIGHTS) {
        take_descriptors(message, CMSG_DATA(part), length / sizeof(int));
    } else if (part->cmsg_type == SCM_CREDENTIALS) {
        memcpy(&sender, CMSG_DATA(part), sizeof sender);
        message->sender = sender.pid;
    }
}

bool fd_message_receive(int socket, void *data, size_t limit, size_t *size,
                        struct fd_message *message)
{
    struct iovec bytes = {.iov_base = data, .iov_len = limit};
    union control control;
    struct msghdr header = {
        .msg_iov = &bytes,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t length;

    message->count = 0;
    message->sender = 0;
    *size = 0;
    do
        length = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return false;
    if (length == 0 && header.msg_controllen == 0) {
        errno = 0;
        return false;
    }
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&header); part != NULL;
         part = CMSG_NXTHDR(&header, part))
        take(message, part);
    *size = (size_t)length;
    return true;
}

void fd_message_close(struct fd_message *message)
{
    for (int i = 0; i < message->count; i++)
        close(message->descriptors[i]);
    message->count = 0;
}

void fd_message_close_at_once(struct fd_message *message)
{
    const struct linger none = {0};

    for (int i = 0; i < message->count; i++)
        setsockopt(message->descriptors[i], SOL_SOCKET, SO_LINGER, &none, sizeof none);
    fd_message_close(message);
}
