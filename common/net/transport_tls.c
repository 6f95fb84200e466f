/* The transport of TLS. After the session has ended, the connection is plain: it only reads the
 * rest and throws it away. */
#include "common/net/transport_tls.h"

#include "common/net/tls.h"
#include "common/net/tls_bio.h"
#include "common/net/tls_client.h"
#include "common/net/transport_plain.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

/* A client that sends this many records in a row without a byte of data is cut off. */
#define IDLE_RECORDS 32

struct session {
    SSL *ssl;
    struct tls_bio wire;
    uint64_t written; /* bytes before encryption */
    bool broken;      /* nothing can be sent any more */
};

/* Returns the session, which the first read or write makes: a failure is then that call's. */
static struct session *begin(struct transport *transport)
{
    struct session *session = transport->own;

    ERR_clear_error();
    if (session != NULL) {
        session->wire.transport = transport; /* the transport may have been copied */
        return session;
    }
    session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->wire.transport = transport;
    session->ssl = transport->kind == &transport_tls_client
                       ? tls_client_begin(transport->shared, &session->wire)
                       : tls_begin(transport->shared, &session->wire);
    if (session->ssl == NULL) {
        free(session);
        return NULL;
    }
    transport->own = session;
    return session;
}

static void become_plain(struct transport *transport)
{
    struct session *session = transport->own;

    if (session != NULL)
        SSL_free(session->ssl);
    free(session);
    transport->own = NULL;
    transport->kind = &transport_plain;
    transport->session_over = true;
}

/* Tells the client that the session is over, if there is one. */
static void say_goodbye(struct transport *transport)
{
    struct session *session = transport->own;

    if (session == NULL || session->broken || !SSL_is_init_finished(session->ssl))
        return;
    ERR_clear_error();
    session->wire.transport = transport;
    session->wire.more = false;
    SSL_shutdown(session->ssl);
}

/* Translates what OpenSSL says of a call that moved nothing. */
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
    default: /* the socket failed, or the client left without a word */
        session->broken = true;
        return TRANSFER_FAILED;
    }
}

static bool holds_more(const struct session *session)
{
    return SSL_has_pending(session->ssl) || session->wire.surplus;
}

/* Reads all there is: polling the socket does not report bytes that the session holds. `*pending`
 * is true if an end or an error follows the data. */
static enum transfer read_all(struct session *session, char *data, size_t size, size_t *count,
                              bool *pending)
{
    enum transfer transfer = TRANSFER_DONE;
    int idle = 0;

    *pending = false;
    session->wire.reading = true;
    session->wire.reads = session->wire.answers = 0;
    while (*count < size && (*count == 0 || holds_more(session))) {
        size_t taken = 0;
        int result;

        session->wire.dry = false;
        result = SSL_read_ex(session->ssl, data + *count, size - *count, &taken);
        *count += taken;
        if (result == 1)
            continue;
        transfer = judge(session, result);
        if (transfer != TRANSFER_READ || session->wire.dry)
            break;
        if (++idle > IDLE_RECORDS) { /* this record had no data */
            session->broken = true;
            transfer = TRANSFER_REFUSED;
            break;
        }
    }
    session->wire.reading = false;
    if (*count == 0)
        return transfer;
    *pending = transfer != TRANSFER_DONE && transfer != TRANSFER_READ;
    return TRANSFER_DONE;
}

static enum transfer tls_read(struct transport *transport, char *data, size_t size, size_t *count)
{
    struct session *session = begin(transport);
    enum transfer transfer;

    *count = 0;
    if (session == NULL)
        return TRANSFER_FAILED;
    transfer = read_all(session, data, size, count, &transport->pending);
    if (session->wire.plain)
        transfer = TRANSFER_PLAIN;
    if (transfer == TRANSFER_PLAIN || transfer == TRANSFER_REFUSED)
        become_plain(transport);
    return transfer;
}

static enum transfer tls_write(struct transport *transport, struct text data, uint64_t more,
                               size_t *count)
{
    struct session *session = begin(transport);
    enum transfer transfer;
    int result;

    *count = 0;
    if (session == NULL)
        return TRANSFER_FAILED;
    session->wire.more = more > 0;
    result = SSL_write_ex(session->ssl, data.data, data.length, count);
    session->written += *count;
    transfer = result == 1 ? TRANSFER_DONE : judge(session, result);
    return transfer == TRANSFER_REFUSED ? TRANSFER_FAILED : transfer;
}

static void tls_finish(struct transport *transport)
{
    say_goodbye(transport);
    become_plain(transport);
    transport_plain.finish(transport);
}

/* The socket counts encrypted bytes, which are more: the result is bounded by those written. */
static uint64_t tls_unacknowledged(struct transport *transport)
{
    uint64_t unacknowledged = transport_plain.unacknowledged(transport);
    const struct session *session = transport->own;

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

const char *transport_tls_problem(const struct transport *transport)
{
    const struct session *session = transport->own;

    if (transport->kind != &transport_tls_client || session == NULL || !session->broken ||
        SSL_is_init_finished(session->ssl))
        return NULL;
    return session->wire.plain ? "The origin does not speak TLS."
                               : tls_client_problem(session->ssl);
}

const struct transport_kind transport_tls = {
    .open = transport_open_stream,
    .read = tls_read,
    .write = tls_write,
    .send_file = transport_copy_file,
    .recall = transport_recall_stream,
    .finish = tls_finish,
    .unacknowledged = tls_unacknowledged,
    .has_input = transport_stream_has_input,
    .abandon = tls_abandon,
    .close = tls_close_socket,
    .peer = transport_peer_of_stream,
};

const struct transport_kind transport_tls_client = {
    .open = transport_open_stream,
    .read = tls_read,
    .write = tls_write,
    .send_file = transport_copy_file,
    .recall = transport_recall_stream,
    .finish = tls_finish,
    .unacknowledged = tls_unacknowledged,
    .abandon = tls_abandon,
    .close = tls_close_socket,
    .peer = transport_peer_of_stream,
};
