/* Opens the listening sockets, or takes them from another process. */
#include "common/net/listener_open.h"

#include "common/net/transport.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define FREE_PORT_TRIES 20
/* The receive buffer for datagrams, at each address. */
#define RECEIVE_BYTES (4 * 1024 * 1024)

/* Reads a numeric address; IPv6 may stand in brackets. Names are not looked up: the address of a
 * server should not depend on the network. */
static bool read_address(const char *string, uint16_t port, union address *address)
{
    struct text text = text_of(string);

    if (text.length >= 2 && text.data[0] == '[' && text.data[text.length - 1] == ']')
        text = (struct text){text.data + 1, text.length - 2};
    return address_read(text, port, address);
}

bool listener_is_address(const char *text)
{
    union address address;

    return read_address(text, 0, &address);
}

static uint16_t bound_port(int socket)
{
    union address address = {0};
    socklen_t length = sizeof address;

    getsockname(socket, &address.any, &length);
    return address_port(&address);
}

/* The ways in which listeners of this server share a port. The first one permits it after it has
 * bound the port: otherwise two servers could share it by mistake. */
enum sharing {
    SHARING_NOT,
    SHARING_FIRST,
    SHARING_TWIN,
};

static bool share_port(int socket)
{
    int on = 1;

    return setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
}

/* Each accepted connection inherits these options. */
static bool set_options(int socket)
{
    const struct timeval patience = {.tv_usec = LISTENER_PATIENCE * 1000};
    int on = 1, unsent = TRANSPORT_UNSENT_BYTES;

    return setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent) == 0 &&
           setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

static int listen_at(const union address *address, int backlog, enum sharing sharing)
{
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || !set_options(fd) ||
        (address->any.sa_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
        (sharing == SHARING_TWIN && !share_port(fd)) ||
        bind(fd, &address->any, address_size(address)) < 0 ||
        (sharing == SHARING_FIRST && !share_port(fd)) || listen(fd, backlog) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* At a wildcard address the kernel is asked to report the destination of each datagram. It limits
 * the receive buffer to what it allows. */
static int receive_at(const union address *address, enum sharing sharing)
{
    bool old = address->any.sa_family == AF_INET;
    int on = 1, room = RECEIVE_BYTES;
    int fd = socket(address->any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if ((!old && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
        (address_is_any(address) &&
         (old ? setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on)
              : setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on)) < 0) ||
        (sharing == SHARING_TWIN && !share_port(fd)) ||
        bind(fd, &address->any, address_size(address)) < 0 ||
        (sharing == SHARING_FIRST && !share_port(fd))) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Opens a UDP socket for the address of each TCP socket. */
static bool open_datagrams(struct listener *listener, enum sharing sharing)
{
    for (int i = 0; i < listener->streams; i++) {
        union address address = {0};
        socklen_t length = sizeof address;
        int fd = -1;

        if (getsockname(listener->sockets[i], &address.any, &length) == 0)
            fd = receive_at(&address, sharing);
        if (fd < 0)
            return false;
        listener->sockets[listener->count++] = fd;
    }
    return true;
}

/* Opens the next socket. The first one determines the port of the others. */
static bool open_next(struct listener *listener, const char *text, uint16_t port, int backlog,
                      enum sharing sharing)
{
    union address address;
    int fd;

    if (!read_address(text, listener->count > 0 ? listener->port : port, &address)) {
        errno = EINVAL;
        return false;
    }
    fd = listen_at(&address, backlog, sharing);
    if (fd < 0)
        return false;
    listener->sockets[listener->count++] = fd;
    listener->streams = listener->count;
    listener->port = bound_port(fd);
    return true;
}

struct listening {
    const char *const *addresses;
    int count;
    bool by_default; /* the addresses are the default: IPv6 may be missing */
    uint16_t port;
    int backlog;
    bool twins, datagrams;
};

static bool is_without_ipv6(int error)
{
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

/* Opens all sockets. On failure, `*failed` is the address, or NULL for a UDP socket. */
static bool open_all(struct listener *listener, const struct listening *listening,
                     const char **failed)
{
    enum sharing sharing = listening->twins ? SHARING_FIRST : SHARING_NOT;

    *listener = (struct listener){0};
    for (int i = 0; i < listening->count; i++) {
        *failed = listening->addresses[i];
        if (!open_next(listener, *failed, listening->port, listening->backlog, sharing) &&
            !(listening->by_default && i > 0 && is_without_ipv6(errno)))
            return false;
    }
    *failed = NULL;
    return !listening->datagrams || open_datagrams(listener, sharing);
}

bool listener_open(struct listener *listener, const char *const *addresses, int count,
                   uint16_t port, int backlog, bool twins, bool datagrams)
{
    static const char *const loopback[] = {"127.0.0.1", "::1"};
    const struct listening listening = {
        .addresses = count > 0 ? addresses : loopback,
        .count = count > 0 ? count : 2,
        .by_default = count == 0,
        .port = port,
        .backlog = backlog,
        .twins = twins,
        .datagrams = datagrams,
    };
    const char *failed;
    int tries = 0;

    while (!open_all(listener, &listening, &failed)) {
        uint16_t found = listener->count > 0 ? listener->port : port;
        int error = errno;

        listener_close(listener);
        /* The free port of the first address is taken at another one, or for UDP: try again. */
        if (port == 0 && error == EADDRINUSE && ++tries < FREE_PORT_TRIES)
            continue;
        errno = error;
        if (failed != NULL)
            warn("cannot listen at %s, port %u", failed, found);
        else
            warn("cannot receive datagrams at port %u", found);
        return false;
    }
    return true;
}

/* A socket of another kind fails here or at the first accept. */
static bool adopt(struct listener *listener, int socket, bool twins)
{
    int flags = fcntl(socket, F_GETFL), listens = 0;
    socklen_t length = sizeof listens;

    if (flags < 0 || getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) < 0)
        return false;
    if (listens == 0) {
        errno = EINVAL;
        return false;
    }
    listener->sockets[listener->count++] = socket;
    listener->streams = listener->count;
    return fcntl(socket, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 && set_options(socket) &&
           (!twins || share_port(socket));
}

bool listener_adopt(struct listener *listener, int first, int count, bool twins, bool datagrams)
{
    bool good = count <= LISTENER_LIMIT;

    *listener = (struct listener){.adopted = true};
    errno = E2BIG;
    for (int i = 0; good && i < count; i++)
        good = adopt(listener, first + i, twins);
    if (good) {
        listener->port = bound_port(first);
        listener_restore(listener);
    }
    if (good && (!datagrams || open_datagrams(listener, twins ? SHARING_FIRST : SHARING_NOT)))
        return true;
    warn("cannot listen at the %d sockets of the service manager", count);
    return false;
}

/* The modes of the sockets stay as the server before has set them, which is the same model: both
 * servers accept for a while, and a change would concern both. */
bool listener_inherit(struct listener *listener, int first, int streams, int datagrams,
                      bool adopted)
{
    *listener = (struct listener){.adopted = adopted};
    for (int i = 0; i < streams + datagrams; i++) {
        int listens = 0, wanted = i < streams;
        socklen_t length = sizeof listens;
        if (getsockopt(first + i, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) < 0 ||
            listens != wanted) {
            warnx("cannot listen at socket %d of the server before this one", first + i);
            return false;
        }
        listener->sockets[listener->count++] = first + i;
    }
    listener->streams = streams;
    listener->port = bound_port(first);
    listener_restore(listener);
    return true;
}

bool listener_twin(struct listener *twin, const struct listener *first, int backlog)
{
    *twin = (struct listener){.port = first->port};
    for (int i = 0; i < first->streams; i++) {
        union address address = {0};
        socklen_t length = sizeof address;
        int fd = -1;

        if (getsockname(first->sockets[i], &address.any, &length) == 0)
            fd = listen_at(&address, backlog, SHARING_TWIN);
        if (fd < 0)
            return false;
        twin->sockets[twin->count++] = fd;
        twin->streams = twin->count;
    }
    return first->count == first->streams || open_datagrams(twin, SHARING_TWIN);
}

void listener_url(const struct listener *listener, const char *scheme, char *url, int size)
{
    union address address = {0};
    socklen_t length = sizeof address;
    char name[INET6_ADDRSTRLEN] = "";

    getsockname(listener->sockets[0], &address.any, &length);
    address_write(&address, name, sizeof name);
    snprintf(url, (size_t)size, address.any.sa_family == AF_INET ? "%s://%s:%u/" : "%s://[%s]:%u/",
             scheme, name, listener->port);
}
