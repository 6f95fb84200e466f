/* Asks a helper process. */
#include "common/base/question.h"

#include "common/base/fd_message.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const struct timeval patience = {.tv_sec = QUESTION_SECONDS};

bool question_open(int *asking, int *answering)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    *asking = ends[0];
    *answering = ends[1];
    if (setsockopt(*asking, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0)
        return true;
    close(*asking);
    close(*answering);
    return false;
}

int question_send(int socket, const void *data, size_t size)
{
    int ends[2];
    bool sent;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    sent = setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           fd_message_send(socket, data, size, &ends[1], 1);
    close(ends[1]);
    if (sent)
        return ends[0];
    close(ends[0]);
    return -1;
}
