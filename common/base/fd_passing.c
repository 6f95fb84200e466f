/* Passes descriptors through a pair of local sockets, one in each message. */
#include "common/base/fd_passing.h"

#include "common/base/fd_message.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* After a failure of the kernel, such as to find memory, it is asked again so much later. */
#define FAILURE_MILLISECONDS 100

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

    while (!fd_message_receive(fd_passing->taker, &nothing, 1, &size, &message)) {
        if (errno == 0)
            return -1;
        poll(NULL, 0, FAILURE_MILLISECONDS);
    }
    return message.count > 0 ? message.descriptors[0] : -1;
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
