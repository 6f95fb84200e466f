/* Passes descriptors through a pair of local sockets, one in each message. */
#include "common/base/fd_passing.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The space in a message that holds its descriptor. */
union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

static struct msghdr message_of(union control *control, struct iovec *byte)
{
    return (struct msghdr){
        .msg_iov = byte,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof *control,
    };
}

bool fd_passing_open(struct fd_passing *fd_passing)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    *fd_passing = (struct fd_passing){.giver = ends[0], .taker = ends[1]};
    return true;
}

void fd_passing_give(struct fd_passing *fd_passing, int descriptor)
{
    char nothing = 0;
    struct iovec byte = {.iov_base = &nothing, .iov_len = 1};
    union control control = {0};
    struct msghdr message = message_of(&control, &byte);

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    while (sendmsg(fd_passing->giver, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
    close(descriptor);
}

int fd_passing_take(struct fd_passing *fd_passing)
{
    char nothing;
    struct iovec byte = {.iov_base = &nothing, .iov_len = 1};
    union control control = {0};
    struct msghdr message = message_of(&control, &byte);
    int descriptor = -1;
    ssize_t length;

    do
        length = recvmsg(fd_passing->taker, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length == 1 && control.header.cmsg_type == SCM_RIGHTS)
        memcpy(&descriptor, CMSG_DATA(&control.header), sizeof descriptor);
    return descriptor;
}

bool fd_passing_pending(const struct fd_passing *fd_passing)
{
    char byte;

    return recv(fd_passing->taker, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

void fd_passing_end(struct fd_passing *fd_passing)
{
    shutdown(fd_passing->giver, SHUT_WR);
}
