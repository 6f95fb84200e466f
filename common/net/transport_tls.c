/* The transport that encrypts. Once the session is over, for good or ill, what is left of the
 * connection is plain: nothing is said any more, and what comes is thrown away. */
#include "common/net/tls.h"
#include "common/net/transport.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* As much as a record can hold. */
#define RECORD_BYTES 16384
/* A client that sends so many records in a row without a byte of data means no good. */
#define IDLE_RECORDS 32

struct session {
    SSL *ssl;
    uint64_t written; /* before encryption */
    bool more;        /* bytes follow those that are written now */
    bool surplus;     /* the socket may hold more than was taken; */
    bool dry;         /* or nothing, as far as is known */
    bool ended;       /* the client sends no more, whether it has said so or not */
    bool greeted;     /* the client has sent something */
    bool plain;       /* and it was no TLS */
    bool broken;      /* nothing can be said any more */
};

/* ---- how a session reaches the socket ---- */

static int wire_read(BIO *wire, char *data, size_t size, size_t *count)
{
    struct transport *transport = BIO_get_data(wire);
    struct session *session = transport->session;
    ssize_t result;

    BIO_clear_retry_flags(wire);
    do
        result = recv(transport->socket, data, size, transport->patient ? 0 : MSG_DONTWAIT);
    while (result < 0 && errno == EINTR);
    transport->tired = transport->patient && result < 0;
    transport->patient = false;
    session->surplus = result == (ssize_t)size;
    session->ended = result == 0;
    if (result > 0) {
        if (!session->greeted)
            session->plain = data[0] >= 'A' && data[0] <= 'Z';
        session->greeted = true;
    }
    session->dry = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (session->dry)
        BIO_set_retry_read(wire);
    *count = result > 0 ? (size_t)result : 0;
    return result > 0 && !session->plain;
}

static int wire_write(BIO *wire, const char *data, size_t size, size_t *count)
{
    struct transport *transport = BIO_get_data(wire);
    struct session *session = transport->session;
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (session->more ? MSG_MORE : 0);
    ssize_t result;

    BIO_clear_retry_flags(wire);
    do
        result = send(transport->socket, data, size, flags);
    while (result < 0 && errno == EINTR);
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_write(wire);
    *count = result > 0 ? (size_t)result : 0;
    return result > 0;
}

static long wire_control(BIO *wire, int command, long number, void *pointer)
{
    const struct transport *transport = BIO_get_data(wire);

    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return transport->session->ended;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *transport_tls_wire(void)
{
    BIO_METHOD *wire = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");

    if (wire != NULL && BIO_meth_set_read_ex(wire, wire_read) == 1 &&
        BIO_meth_set_write_ex(wire, wire_write) == 1 && BIO_meth_set_ctrl(wire, wire_control) == 1)
        return wire;
    BIO_meth_free(wire);
    return NULL;
}

/* ---- the transport ---- */

/* The session begins when the client is waited for, since that is when it may fail. */
static struct session *begin(struct transport *transport)
{
    struct session *session = transport->session;

    ERR_clear_error();
    if (session != NULL)
        return session;
    session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->ssl = tls_begin(transport->tls, transport);
    if (session->ssl == NULL) {
        free(session);
        return NULL;
    }
    transport->session = session;
    return session;
}

static void become_plain(struct transport *transport)
{
    struct session *session = transport->session;

    if (session != NULL)
        SSL_free(session->ssl);
    free(session);
    transport->session = NULL;
    transport->kind = &transport_plain;
}

/* Says that the session is over, where there is one. */
static void say_goodbye(struct transport *transport)
{
    struct session *session = transport->session;

    if (session == NULL || session->broken || !SSL_is_init_finished(session->ssl))
        return;
    ERR_clear_error();
    session->more = false;
    SSL_shutdown(session->ssl);
}

/* Makes one answer of what the session said. */
static enum transfer judge(struct session *session, int result)
{
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return TRANSFER_READ;
    case SSL_ERROR_WANT_WRITE:
        return TRANSFER_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return TRANSFER_END;
    case SSL_ERROR_SSL:
        session->broken = true;
        return TRANSFER_REFUSED;
    default: /* of the socket, or the client left without a word */
        session->broken = true;
        return TRANSFER_FAILED;
    }
}

static bool holds_more(const struct session *session)
{
    return SSL_has_pending(session->ssl) || session->surplus;
}

/* Reads all that there is, since nobody is told of what the session holds: only of the socket. If
 * something else than the next record is behind the data, be it the end, `*holds`. */
static enum transfer read_all(struct session *session, char *data, size_t size, size_t *count,
                              bool *holds)
{
    enum transfer transfer = TRANSFER_DONE;
    int idle = 0;

    *holds = false;
    while (*count < size && (*count == 0 || holds_more(session))) {
        size_t taken = 0;
        int result;

        session->dry = false;
        result = SSL_read_ex(session->ssl, data + *count, size - *count, &taken);
        *count += taken;
        if (result == 1)
            continue;
        transfer = judge(session, result);
        if (transfer != TRANSFER_READ || session->dry)
            break;
        if (++idle > IDLE_RECORDS) { /* there was a record, and no data in it */
            session->broken = true;
            transfer = TRANSFER_REFUSED;
            break;
        }
    }
    if (*count == 0)
        return transfer;
    *holds = transfer != TRANSFER_DONE && transfer != TRANSFER_READ;
    return TRANSFER_DONE;
}

static enum transfer tls_read(struct transport *transport, char *data, size_t size, size_t *count)
{
    struct session *session = begin(transport);
    enum transfer transfer;

    *count = 0;
    if (session == NULL)
        return TRANSFER_FAILED;
    transfer = read_all(session, data, size, count, &transport->holds);
    if (session->plain)
        transfer = TRANSFER_PLAIN;
    if (transfer == TRANSFER_PLAIN || transfer == TRANSFER_REFUSED)
        become_plain(transport);
    return transfer;
}

static enum transfer tls_write(struct transport *transport, struct text data, bool more,
                               size_t *count)
{
    struct session *session = begin(transport);
    int result;

    *count = 0;
    if (session == NULL)
        return TRANSFER_FAILED;
    session->more = more;
    result = SSL_write_ex(session->ssl, data.data, data.length, count);
    session->written += *count;
    return result == 1 ? TRANSFER_DONE : judge(session, result);
}

static enum transfer tls_send_file(struct transport *transport, int file, uint64_t offset,
                                   uint64_t length, size_t *count)
{
    char data[RECORD_BYTES];
    size_t portion = length < sizeof data ? (size_t)length : sizeof data;
    ssize_t result;

    *count = 0;
    do
        result = pread(file, data, portion, (off_t)offset);
    while (result < 0 && errno == EINTR);
    if (result <= 0)
        return result == 0 ? TRANSFER_END : TRANSFER_FAILED;
    return tls_write(transport, (struct text){data, (size_t)result}, false, count);
}

static void tls_finish(struct transport *transport)
{
    say_goodbye(transport);
    become_plain(transport);
    transport_plain.finish(transport);
}

/* Encryption makes the bytes a little more: never more than were written. */
static uint64_t tls_unacknowledged(struct transport *transport)
{
    uint64_t unacknowledged = transport_plain.unacknowledged(transport);
    const struct session *session = transport->session;

    return session != NULL && unacknowledged > session->written ? session->written : unacknowledged;
}

static void tls_abandon(struct transport *transport)
{
    become_plain(transport);
    transport_plain.abandon(transport);
}

static void tls_close_socket(struct transport *transport)
{
    say_goodbye(transport);
    become_plain(transport);
    transport_plain.close(transport);
}

const struct transport_kind transport_tls = {
    .read = tls_read,
    .write = tls_write,
    .send_file = tls_send_file,
    .finish = tls_finish,
    .unacknowledged = tls_unacknowledged,
    .abandon = tls_abandon,
    .close = tls_close_socket,
};
