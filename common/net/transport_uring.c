/* The transport of plain TCP by a ring: what is read was received by the ring before, and what is
 * written is sent by the ring later. */
#include "common/net/transport_uring.h"

#include "common/net/transport_plain.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- operations ---- */

static struct io_uring_sqe *begin(struct uring_stream *stream, enum uring_operation operation,
                                  int socket)
{
    struct io_uring_sqe *entry = uring_entry(stream->ring);

    if (entry == NULL)
        return NULL;
    entry->fd = socket;
    entry->user_data = (uintptr_t)stream | operation;
    stream->position = uring_position(stream->ring);
    stream->in_flight++;
    return entry;
}

/* An attempt to receive at once would be in vain, unless the kernel has more input already. */
bool transport_uring_receive(struct uring_stream *stream, int socket)
{
    struct io_uring_sqe *entry = begin(stream, URING_OF_RECEIVE, socket);

    if (entry == NULL)
        return false;
    entry->opcode = IORING_OP_RECV;
    entry->flags = IOSQE_BUFFER_SELECT;
    entry->buf_group = URING_BUFFER_GROUP;
    if (!stream->more)
        entry->ioprio = IORING_RECVSEND_POLL_FIRST;
    stream->receiving = true;
    return true;
}

/* The send does not wait for room: once the kernel has taken the entry, the send has ended, and
 * does not read the bytes any more. */
static bool begin_to_send(struct uring_stream *stream, int socket, struct text data, bool more)
{
    struct io_uring_sqe *entry = begin(stream, URING_OF_SEND, socket);

    if (entry == NULL)
        return false;
    entry->opcode = IORING_OP_SEND;
    entry->addr = (uintptr_t)data.data;
    entry->len = (unsigned)(data.length < (1 << 30) ? data.length : 1 << 30);
    entry->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    stream->sending = true;
    return true;
}

void transport_uring_cancel(struct uring_stream *stream, enum uring_operation operation)
{
    struct io_uring_sqe *entry = uring_entry(stream->ring);

    if (entry == NULL)
        return;
    entry->opcode = IORING_OP_ASYNC_CANCEL;
    entry->flags = IOSQE_CQE_SKIP_SUCCESS;
    entry->addr = (uintptr_t)stream | operation;
    entry->cancel_flags = IORING_ASYNC_CANCEL_ALL;
    entry->user_data = URING_NOBODY;
}

static void note_received(struct uring_stream *stream, const struct io_uring_cqe *completion,
                          bool closed)
{
    bool has_buffer = (completion->flags & IORING_CQE_F_BUFFER) != 0;
    unsigned buffer = completion->flags >> IORING_CQE_BUFFER_SHIFT;

    stream->receiving = false;
    if (has_buffer && (closed || completion->res <= 0))
        uring_give_back(stream->ring, buffer);
    if (closed)
        return;
    stream->has_received = true;
    stream->received = completion->res;
    stream->more = (completion->flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    stream->buffer = buffer;
    stream->taken = 0;
}

void transport_uring_note(struct uring_stream *stream, const struct io_uring_cqe *completion,
                          bool closed)
{
    stream->in_flight--;
    switch (completion->user_data & URING_OPERATION_MASK) {
    case URING_OF_RECEIVE:
        note_received(stream, completion, closed);
        break;
    case URING_OF_SEND:
        stream->sending = false;
        stream->has_sent = true;
        stream->sent = completion->res;
        break;
    default:
        break;
    }
}

/* ---- the transport ---- */

void transport_uring_begin(struct transport *transport, struct uring_stream *stream,
                           struct uring *ring)
{
    stream->ring = ring;
    stream->is_open = true;
    stream->direct = true; /* most requests come with their connection */
    transport->kind = &transport_uring;
    transport->own = stream;
}

/* Asks the kernel, which is right while the ring does not receive. */
static enum transfer read_directly(struct transport *transport, char *data, size_t size,
                                   size_t *count)
{
    struct uring_stream *stream = transport->own;
    enum transfer transfer = transport_plain.read(transport, data, size, count);

    stream->direct = *count == size || transfer == TRANSFER_END;
    stream->more = *count == size;
    return transfer;
}

/* Takes what the ring has received. */
static enum transfer take(struct transport *transport, char *data, size_t size, size_t *count)
{
    struct uring_stream *stream = transport->own;
    size_t rest = (size_t)(stream->received - stream->taken);

    *count = size < rest ? size : rest;
    memcpy(data, uring_buffer(stream->ring, stream->buffer) + stream->taken, *count);
    stream->taken += (int)*count;
    transport->pending = *count < rest || stream->more;
    if (*count == rest) {
        uring_give_back(stream->ring, stream->buffer);
        stream->has_received = false;
    }
    return TRANSFER_DONE;
}

/* A stream for which there was no buffer, or whose socket does not let the ring wait, is read
 * directly. */
static enum transfer read_ring(struct transport *transport, char *data, size_t size, size_t *count)
{
    struct uring_stream *stream = transport->own;

    *count = 0;
    if (stream->has_received && stream->received > 0)
        return take(transport, data, size, count);
    transport->pending = false;
    if (stream->has_received) {
        stream->has_received = false;
        stream->unfit |= transport_may_retry(-stream->received);
        stream->direct = stream->received == 0 || stream->received == -ENOBUFS || stream->unfit;
        if (stream->received == 0 || !stream->direct)
            return stream->received == 0 ? TRANSFER_END : TRANSFER_FAILED;
    }
    if (stream->receiving || !(stream->direct || stream->unfit))
        return TRANSFER_READ;
    return read_directly(transport, data, size, count);
}

static enum transfer judge_sent(struct transport *transport, size_t *count)
{
    struct uring_stream *stream = transport->own;

    stream->has_sent = false;
    transport_note_room(transport, stream->sent >= 0);
    *count = stream->sent > 0 ? (size_t)stream->sent : 0;
    if (stream->sent > 0)
        return TRANSFER_DONE;
    return transport_may_retry(-stream->sent) ? TRANSFER_WRITE : TRANSFER_FAILED;
}

/* So few bytes leave at once, unless the client does not read. */
#define IDLE_BYTES 16384

/* Has the ring wait for the next request, not for the end of the send. */
static void receive_next(const struct transport *transport)
{
    struct uring_stream *stream = transport->own;

    if (stream->unfit)
        return;
    uring_is_idle(stream->ring);
    if (!stream->receiving && !stream->has_received)
        transport_uring_receive(stream, transport->socket);
}

/* The last bytes of a connection leave at once: the ring would only delay its end. */
static enum transfer write_ring(struct transport *transport, struct text data, uint64_t more,
                                size_t *count)
{
    struct uring_stream *stream = transport->own;

    *count = 0;
    if (stream->has_sent)
        return judge_sent(transport, count);
    if (stream->sending)
        return TRANSFER_QUEUED;
    if (more || !uring_may_queue(stream->ring) ||
        !begin_to_send(stream, transport->socket, data, more))
        return transport_plain.write(transport, data, more, count);
    if (transport->rests && data.length <= IDLE_BYTES)
        receive_next(transport);
    return TRANSFER_QUEUED;
}

static enum transfer send_file(struct transport *transport, int file, uint64_t offset,
                               uint64_t length, size_t *count)
{
    return transport_plain.send_file(transport, file, offset, length, count);
}

static void finish(struct transport *transport)
{
    transport_plain.finish(transport);
}

static uint64_t unacknowledged(struct transport *transport)
{
    return transport_plain.unacknowledged(transport);
}

static void abandon(struct transport *transport)
{
    transport_plain.abandon(transport);
}

static bool has_input(const struct transport *transport)
{
    const struct uring_stream *stream = transport->own;

    return (stream->has_received && stream->received > 0) || transport_plain.has_input(transport);
}

static void settle_stream(struct uring_stream *stream)
{
    uring_settle(stream->ring, stream->position, (uintptr_t)stream, URING_OPERATION_MASK);
}

/* A send that is still in the queue reads its memory when it is submitted. */
static void settle(struct transport *transport)
{
    struct uring_stream *stream = transport->own;

    if (stream->sending)
        settle_stream(stream);
}

/* The number of the socket is free after this: no entry may be in the queue that names it. */
static void close_ring(struct transport *transport)
{
    struct uring_stream *stream = transport->own;

    if (stream->in_flight > 0)
        settle_stream(stream);
    if (stream->has_received && stream->received > 0)
        uring_give_back(stream->ring, stream->buffer);
    if (stream->receiving)
        transport_uring_cancel(stream, URING_OF_RECEIVE);
    transport_plain.close(transport);
}

const struct transport_kind transport_uring = {
    .open = transport_open_stream,
    .read = read_ring,
    .write = write_ring,
    .send_file = send_file,
    .recall = transport_recall_stream,
    .finish = finish,
    .unacknowledged = unacknowledged,
    .has_input = has_input,
    .abandon = abandon,
    .settle = settle,
    .close = close_ring,
    .peer = transport_peer_of_stream,
};
