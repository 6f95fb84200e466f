/* Accepts connections and datagrams at the listening sockets, and ends listening. */
#include "common/net/listener.h"

#include "common/net/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- accepting ---- */

static int accept_at(int socket, union address *client)
{
    socklen_t length;
    int fd;

    do {
        length = sizeof *client;
        fd = accept4(socket, &client->any, &length, SOCK_CLOEXEC);
    } while (fd < 0 && errno == ECONNABORTED);
    if (fd < 0 && errno == EINVAL)
        errno = ESHUTDOWN;
    return fd;
}

static int take_at(const struct listener *listener, int place, union address *client)
{
    client->any.sa_family = ADDRESS_OF_DATAGRAMS;
    return place < listener->streams ? accept_at(listener->sockets[place], client)
                                     : datagram_receive(listener->sockets[place]);
}

int listener_accept(struct listener *listener, union address *client)
{
    return take_at(listener, listener->next, client);
}

static bool block(int socket)
{
    int flags = fcntl(socket, F_GETFL);

    return flags >= 0 && fcntl(socket, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

bool listener_defer(const struct listener *listener)
{
    const int seconds = LISTENER_DEFER;
    bool good = true;

    for (int i = 0; i < listener->streams; i++)
        good = setsockopt(listener->sockets[i], IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds,
                          sizeof seconds) == 0 &&
               good;
    return good;
}

bool listener_share(struct listener *listener)
{
    return listener->count > 1 || block(listener->sockets[0]);
}

/* Each worker has an epoll: with one for all, a connection would wake a second worker in vain. */
int listener_watch(const struct listener *listener, int stop)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = LISTENER_SOCKETS};
    int events = epoll_create1(EPOLL_CLOEXEC);
    bool good = events >= 0 && epoll_ctl(events, EPOLL_CTL_ADD, stop, &event) == 0;

    for (int i = 0; good && i < listener->count; i++) {
        event = (struct epoll_event){EPOLLIN | EPOLLEXCLUSIVE, {.u32 = (uint32_t)i}};
        good = epoll_ctl(events, EPOLL_CTL_ADD, listener->sockets[i], &event) == 0;
    }
    if (!good && events >= 0) {
        int error = errno;
        close(events);
        errno = error;
        return -1;
    }
    return events;
}

int listener_await(struct listener *listener, int events, int milliseconds, union address *client)
{
    struct epoll_event event = {.data.u32 = 0};
    int fd, count;

    do {
        if (listener->count > 1 || milliseconds != LISTENER_PATIENCE) {
            count = epoll_wait(events, &event, 1, milliseconds);
            if (count == 0)
                errno = EAGAIN;
            else if (count > 0 && event.data.u32 == LISTENER_SOCKETS)
                errno = ECANCELED;
            if (count < 1 || event.data.u32 == LISTENER_SOCKETS)
                return -1;
        }
        fd = take_at(listener, (int)event.data.u32, client);
        /* EAGAIN: another worker was faster. */
    } while (fd < 0 && errno == EAGAIN && listener->count > 1);
    return fd;
}

/* ---- the end ---- */

bool listener_refuse(struct listener *listener)
{
    /* Drops segments with SYN and without ACK. Closing a listener resets the clients in its queue,
     * or on the way into it: this filter lets the queue drain first. */
    struct sock_filter drop_syn[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), /* the flags of the TCP header */
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TH_SYN | TH_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog for_streams = {sizeof drop_syn / sizeof drop_syn[0], drop_syn};
    struct sock_fprog for_datagrams = {sizeof drop_all / sizeof drop_all[0], drop_all};

    if (listener->adopted)
        return false;
    /* Some kernels allow no filter without privileges: a late client may then be reset. */
    for (int i = 0; i < listener->count; i++)
        if (setsockopt(listener->sockets[i], SOL_SOCKET, SO_ATTACH_FILTER,
                       i < listener->streams ? &for_streams : &for_datagrams,
                       sizeof for_streams) < 0)
            return false;
    return true;
}

/* Each router that a packet passes takes one from its hop limit, which begins below this one. */
#define HOP_LIMIT_MOST 255

static bool require_hop_limit(int socket, sa_family_t family, int least)
{
    return family == AF_INET6
               ? setsockopt(socket, IPPROTO_IPV6, IPV6_MINHOPCOUNT, &least, sizeof least) == 0
               : setsockopt(socket, IPPROTO_IP, IP_MINTTL, &least, sizeof least) == 0;
}

bool listener_refuse_by_hop_limit(struct listener *listener)
{
    if (listener->adopted)
        return false;
    for (int i = 0; i < listener->streams; i++) {
        union address address = {0};
        socklen_t length = sizeof address;
        if (getsockname(listener->sockets[i], &address.any, &length) < 0 ||
            !require_hop_limit(listener->sockets[i], address.any.sa_family, HOP_LIMIT_MOST))
            return false;
    }
    return listener->count == listener->streams;
}

/* A socket of IPv6 may have clients of IPv4. */
void listener_restore(const struct listener *listener)
{
    const struct linger none = {0};

    for (int i = 0; i < listener->streams; i++) {
        setsockopt(listener->sockets[i], SOL_SOCKET, SO_LINGER, &none, sizeof none);
        require_hop_limit(listener->sockets[i], AF_INET, 0);
        require_hop_limit(listener->sockets[i], AF_INET6, 0);
    }
}

void listener_receive_from(int socket, const union address *client)
{
    if (client->any.sa_family == AF_INET || client->any.sa_family == AF_INET6)
        require_hop_limit(socket, client->any.sa_family, 0);
}

bool listener_is_empty(const struct listener *listener)
{
    for (int i = 0; i < listener->count; i++) {
        struct pollfd wait = {.fd = listener->sockets[i], .events = POLLIN};
        if (poll(&wait, 1, 0) > 0)
            return false;
    }
    return true;
}

void listener_hand_over(struct listener *listener)
{
    listener->adopted = true;
}

/* For a socket that listens, the kernel reports the length of its queue here. */
static int queue_length(int socket)
{
    struct tcp_info info;
    socklen_t length = sizeof info;

    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return 0;
    return (int)info.tcpi_unacked;
}

int listener_waiting(const struct listener *listener)
{
    int waiting = 0;

    for (int i = 0; i < listener->count; i++) {
        struct pollfd wait = {.fd = listener->sockets[i], .events = POLLIN};
        waiting +=
            i < listener->streams ? queue_length(listener->sockets[i]) : poll(&wait, 1, 0) > 0;
    }
    return waiting;
}

void listener_shut_down(const struct listener *listener)
{
    for (int i = 0; i < listener->streams && !listener->adopted; i++)
        shutdown(listener->sockets[i], SHUT_RD);
}

/* Adjacent descriptors are closed by one call: a child of fork closes them for each connection. */
void listener_drop_streams(const struct listener *listener)
{
    const int *sockets = listener->sockets;

    for (int first = 0, next; first < listener->streams; first = next) {
        next = first + 1;
        while (next < listener->streams && sockets[next] == sockets[next - 1] + 1)
            next++;
        if (close_range((unsigned)sockets[first], (unsigned)sockets[next - 1], 0) < 0)
            for (int i = first; i < next; i++) /* before Linux 5.9 */
                close(sockets[i]);
    }
}

void listener_leave_streams(struct listener *listener)
{
    int datagrams = listener->count - listener->streams;

    listener_drop_streams(listener);
    memmove(listener->sockets, listener->sockets + listener->streams,
            (size_t)datagrams * sizeof listener->sockets[0]);
    listener->streams = 0;
    listener->count = datagrams;
}

void listener_close_streams(struct listener *listener)
{
    listener_shut_down(listener); /* child processes may still hold them */
    listener_leave_streams(listener);
}

void listener_close(struct listener *listener)
{
    listener_close_streams(listener);
    for (int i = 0; i < listener->count; i++)
        close(listener->sockets[i]);
    listener->count = 0;
}
