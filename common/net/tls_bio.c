/* A BIO of OpenSSL that reads and writes the socket of a transport. */
#include "common/net/tls_bio.h"

#include <errno.h>
#include <openssl/bio.h>

/* While records without data come, such as updates of keys, OpenSSL reads on and on. So after
 * READS_LIMIT reads the socket seems empty, and after ANSWERS_LIMIT answers the session ends: a
 * handshake takes a few of each. */
#define READS_LIMIT   8
#define ANSWERS_LIMIT 32

static int pretend_dry(BIO *bio, struct tls_bio *wire, size_t *count)
{
    BIO_clear_retry_flags(bio);
    BIO_set_retry_read(bio);
    wire->dry = true;
    wire->surplus = false;
    *count = 0;
    return 0;
}

static int read_socket(BIO *bio, char *data, size_t size, size_t *count)
{
    struct tls_bio *wire = BIO_get_data(bio);
    struct transport *transport = wire->transport;
    ssize_t result;

    if (wire->reading && wire->reads++ >= READS_LIMIT)
        return pretend_dry(bio, wire, count);
    result = recv(transport->socket, data, size, transport->patient ? 0 : MSG_DONTWAIT);
    BIO_clear_retry_flags(bio);
    transport->timed_out = transport->patient && result < 0;
    transport->patient = false;
    wire->surplus = result == (ssize_t)size;
    wire->ended = result == 0;
    if (result > 0) {
        if (!wire->greeted)
            wire->plain = data[0] >= 'A' && data[0] <= 'Z';
        wire->greeted = true;
    }
    wire->dry = result < 0 && transport_may_retry(errno);
    if (wire->dry)
        BIO_set_retry_read(bio);
    *count = result > 0 ? (size_t)result : 0;
    return result > 0 && !wire->plain;
}

static int write_socket(BIO *bio, const char *data, size_t size, size_t *count)
{
    struct tls_bio *wire = BIO_get_data(bio);
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (wire->more ? MSG_MORE : 0);
    ssize_t result;

    BIO_clear_retry_flags(bio);
    *count = 0;
    if (wire->reading && ++wire->answers > ANSWERS_LIMIT)
        return 0;
    do
        result = send(wire->transport->socket, data, size, flags);
    while (result < 0 && errno == EINTR);
    if (result < 0 && transport_may_retry(errno))
        BIO_set_retry_write(bio);
    transport_note_room(wire->transport, result >= 0);
    *count = result > 0 ? (size_t)result : 0;
    return result > 0;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_bio *wire = BIO_get_data(bio);

    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return wire->ended;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");

    if (method != NULL && BIO_meth_set_read_ex(method, read_socket) == 1 &&
        BIO_meth_set_write_ex(method, write_socket) == 1 && BIO_meth_set_ctrl(method, control) == 1)
        return method;
    BIO_meth_free(method);
    return NULL;
}

BIO *tls_bio_make(BIO_METHOD *method, struct tls_bio *wire)
{
    BIO *bio = BIO_new(method);

    if (bio != NULL) {
        BIO_set_data(bio, wire);
        BIO_set_init(bio, 1);
    }
    return bio;
}
