/* Passes descriptors through a pair of local sockets, one in each message. */
#include "common/base/fd_passing.h"

#include "common/base/fd_message.h"

#include <sys/socket.h>
#include <unistd.h>

bool fd_passing_open(struct fd_passing *fd_passing)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    *fd_passing = (struct fd_passing){.giver = ends[0], .taker = ends[1]};
    return true;
}

bool fd_passing_give(struct fd_passing *fd_passing, int descriptor)
{
    char nothing = 0;

    if (!fd_message_send(fd_passing->giver, &nothing, 1, &descriptor, 1))
        return false;
    close(descriptor);
    return true;
}

int fd_passing_take(struct fd_passing *fd_passing)
{
    struct fd_message message;
    size_t size;
    char nothing;

    if (!fd_message_receive(fd_passing->taker, &nothing, 1, &size, &message) || message.count == 0)
        return -1;
    return message.descriptors[0];
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
