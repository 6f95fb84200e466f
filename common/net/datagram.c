/* Receives UDP datagrams, hands them on through pipes, and sends the responses. */
#include "common/net/datagram.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The capacity of a pipe, whatever the page size. */
#define PIPE_BYTES 65536
/* The first allocation for a response: most need less. */
#define RESPONSE_FIRST 2048

/* The bytes that travel through the pipe. */
struct parcel {
    struct envelope envelope;
    char request[DATAGRAM_REQUEST_LIMIT];
};

static_assert(sizeof(struct parcel) <= PIPE_BYTES, "a parcel fits into a pipe");

/* The control message that holds the local address of a datagram. */
union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

/* ---- receiving ---- */

/* False if the datagram was sent by broadcast or multicast: too many servers would answer. */
static bool note_local(struct envelope *envelope, struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    struct in_pktinfo v4;
    struct in6_pktinfo v6;

    if (header == NULL)
        return true;
    if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
        memcpy(&v4, CMSG_DATA(header), sizeof v4);
        envelope->local.v4 = v4.ipi_spec_dst;
        envelope->located = true;
        return v4.ipi_addr.s_addr == v4.ipi_spec_dst.s_addr;
    }
    if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
        memcpy(&v6, CMSG_DATA(header), sizeof v6);
        envelope->local.v6 = v6.ipi6_addr;
        envelope->interface = IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr) ? v6.ipi6_ifindex : 0;
        envelope->located = true;
        return !IN6_IS_ADDR_MULTICAST(&v6.ipi6_addr);
    }
    return true;
}

/* A datagram that is too long or not for this server becomes an empty one, which is no request. */
static bool receive(struct envelope *envelope, char *request, int socket)
{
    struct iovec data = {.iov_base = request, .iov_len = DATAGRAM_REQUEST_LIMIT};
    union control control;
    struct msghdr message = {
        .msg_name = &envelope->peer,
        .msg_namelen = sizeof envelope->peer,
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t length;

    do
        length = recvmsg(socket, &message, MSG_DONTWAIT);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return false;
    envelope->socket = socket;
    if (note_local(envelope, &message) && !(message.msg_flags & MSG_TRUNC))
        envelope->length = (size_t)length;
    return true;
}

/* Returns the read end of a pipe that holds the parcel; -1 with errno, ENOBUFS if the pipe is too
 * small: a user who has very many pipes gets small ones. */
static int put_into_pipe(const struct parcel *parcel, size_t size)
{
    int ends[2];
    ssize_t written;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    written = write(ends[1], parcel, size);
    close(ends[1]);
    if (written == (ssize_t)size)
        return ends[0];
    close(ends[0]);
    errno = ENOBUFS;
    return -1;
}

/* Returns a file in memory that holds the parcel: it costs more than a pipe, and is never small. */
static int put_into_file(const struct parcel *parcel, size_t size)
{
    int file = memfd_create("datagram", MFD_CLOEXEC);

    if (file < 0)
        return -1;
    if (pwrite(file, parcel, size, 0) == (ssize_t)size) /* it is read from its beginning */
        return file;
    close(file);
    errno = ENOBUFS;
    return -1;
}

int datagram_receive(int socket)
{
    struct parcel parcel;
    size_t size;
    int descriptor;

    memset(&parcel.envelope, 0, sizeof parcel.envelope);
    if (!receive(&parcel.envelope, parcel.request, socket))
        return -1;
    size = offsetof(struct parcel, request) + parcel.envelope.length;
    descriptor = put_into_pipe(&parcel, size);
    return descriptor < 0 && errno == ENOBUFS ? put_into_file(&parcel, size) : descriptor;
}

/* ---- taking it out ---- */

bool datagram_is(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 && !S_ISSOCK(status.st_mode);
}

size_t datagram_room(const union address *peer, size_t request)
{
    size_t room = DATAGRAM_AMPLIFICATION * request;

    return address_is_loopback(peer) || room > DATAGRAM_RESPONSE_LIMIT ? DATAGRAM_RESPONSE_LIMIT
                                                                       : room;
}

/* This reads in two pieces: a whole parcel would touch new pages of the stack. */
struct datagram *datagram_take(int descriptor)
{
    struct envelope envelope;
    struct datagram *datagram;

    if (read(descriptor, &envelope, sizeof envelope) != (ssize_t)sizeof envelope)
        return NULL;
    datagram = malloc(sizeof *datagram + envelope.length);
    if (datagram == NULL)
        return NULL;
    *datagram = (struct datagram){.envelope = envelope};
    if (read(descriptor, datagram->request, envelope.length) == (ssize_t)envelope.length)
        return datagram;
    free(datagram);
    return NULL;
}

void datagram_free(struct datagram *datagram)
{
    if (datagram != NULL)
        free(datagram->response.data);
    free(datagram);
}

/* ---- the response ---- */

static bool grow(struct buffer *response, size_t wanted)
{
    size_t capacity = response->capacity > 0 ? response->capacity : RESPONSE_FIRST;
    char *larger;

    if (wanted <= response->capacity)
        return true;
    while (capacity < wanted)
        capacity *= 2;
    larger = realloc(response->data, capacity);
    if (larger == NULL)
        return false;
    response->data = larger;
    response->capacity = capacity;
    return true;
}

bool datagram_add(struct datagram *datagram, struct text data)
{
    struct buffer *response = &datagram->response;

    if (!grow(response, response->length + data.length))
        return false;
    memcpy(response->data + response->length, data.data, data.length);
    response->length += data.length;
    return true;
}

/* Sends from the address that the request was sent to: the client ignores others. */
static void set_local(const struct envelope *envelope, union control *control,
                      struct msghdr *message)
{
    bool old = envelope->peer.any.sa_family == AF_INET;
    const struct in_pktinfo v4 = {.ipi_spec_dst = envelope->local.v4};
    const struct in6_pktinfo v6 = {.ipi6_addr = envelope->local.v6,
                                   .ipi6_ifindex = envelope->interface};
    size_t size = old ? sizeof v4 : sizeof v6;

    memset(control, 0, sizeof *control);
    control->header.cmsg_level = old ? IPPROTO_IP : IPPROTO_IPV6;
    control->header.cmsg_type = old ? IP_PKTINFO : IPV6_PKTINFO;
    control->header.cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(&control->header), old ? (const void *)&v4 : (const void *)&v6, size);
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(size);
}

void datagram_send(struct datagram *datagram)
{
    struct envelope *envelope = &datagram->envelope;
    struct iovec data = {.iov_base = datagram->response.data, .iov_len = datagram->response.length};
    union control control;
    struct msghdr message = {
        .msg_name = &envelope->peer,
        .msg_namelen = address_size(&envelope->peer),
        .msg_iov = &data,
        .msg_iovlen = 1,
    };

    if (datagram->sent || data.iov_len == 0)
        return;
    if (envelope->located)
        set_local(envelope, &control, &message);
    datagram->sent = true;
    /* A response that cannot be sent is lost, as if the network had lost it. */
    while (sendmsg(envelope->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}
