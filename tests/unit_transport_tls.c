/* Tests of transport_tls.c: a client that sends records without data. */
#include "common/net/transport_tls.h"

#include "common/net/key_reader.h"
#include "common/net/tls.h"
#include "tests/tls_files.h"
#include "tests/unit.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct talk {
    struct tls *tls;
    struct transport server;
    int socket; /* of the client */
    SSL_CTX *context;
    SSL *client;
    BIO *to_client, *from_client;
};

static void open_tls(struct talk *talk)
{
    static char certificate[64], key[64];
    char directory[] = "/tmp/unit_transport_tls.XXXXXX";

    assert_non_null(mkdtemp(directory));
    assert_true(tls_files_make(directory, certificate, key, sizeof key));
    talk->tls = tls_open(&(struct key_files){.paths = {certificate, key}}, false);
    assert_non_null(talk->tls);
    unlink(certificate);
    unlink(key);
    rmdir(directory);
}

static void begin(struct talk *talk)
{
    int ends[2];

    *talk = (struct talk){0};
    open_tls(talk);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    talk->server =
        (struct transport){.kind = &transport_tls, .socket = ends[0], .shared = talk->tls};
    talk->socket = ends[1];
    talk->context = SSL_CTX_new(TLS_client_method());
    talk->client = SSL_new(talk->context);
    talk->to_client = BIO_new(BIO_s_mem());
    talk->from_client = BIO_new(BIO_s_mem());
    SSL_set_bio(talk->client, talk->to_client, talk->from_client);
    SSL_set_connect_state(talk->client);
}

static void end(struct talk *talk)
{
    talk->server.kind->close(&talk->server);
    close(talk->socket);
    SSL_free(talk->client);
    SSL_CTX_free(talk->context);
    tls_close(talk->tls);
}

/* Sends what the client has encrypted. Returns how much the socket has not taken. */
static size_t send_all(struct talk *talk)
{
    char *bytes;
    size_t size = (size_t)BIO_get_mem_data(talk->from_client, &bytes);
    size_t sent = 0;
    ssize_t count = 1;

    for (; sent < size && count > 0; sent += count > 0 ? (size_t)count : 0)
        count = send(talk->socket, bytes + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)BIO_reset(talk->from_client);
    return size - sent;
}

static enum transfer read_once(struct talk *talk, char *data, size_t size, size_t *count)
{
    return talk->server.kind->read(&talk->server, data, size, count);
}

static void shake_hands(struct talk *talk)
{
    char bytes[4096];
    size_t none;
    ssize_t count;

    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(talk->client);
        assert_int_equal(send_all(talk), 0);
        assert_int_equal(read_once(talk, bytes, sizeof bytes, &none), TRANSFER_READ);
        while ((count = recv(talk->socket, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
            BIO_write(talk->to_client, bytes, (int)count);
    }
    assert_true(SSL_is_init_finished(talk->client));
}

static int unread(const struct talk *talk)
{
    int size = 0;

    assert_int_equal(ioctl(talk->server.socket, FIONREAD, &size), 0);
    return size;
}

#define FLOOD_BYTES 160000

/* One read takes some of the records, and returns; the data behind them come in the end. */
static void test_updates_of_keys(void **state)
{
    struct talk talk;
    char data[64];
    size_t count;
    int left, reads = 0;

    (void)state;
    begin(&talk);
    shake_hands(&talk);
    while (BIO_pending(talk.from_client) < FLOOD_BYTES) {
        assert_int_equal(SSL_key_update(talk.client, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(talk.client), 1);
    }
    assert_int_equal(SSL_write(talk.client, "x", 1), 1);
    assert_int_equal(send_all(&talk), 0);
    assert_int_equal(read_once(&talk, data, sizeof data, &count), TRANSFER_READ);
    left = unread(&talk);
    assert_true(left > 0 && left < FLOOD_BYTES);
    do
        assert_true(++reads < FLOOD_BYTES);
    while (read_once(&talk, data, sizeof data, &count) == TRANSFER_READ);
    assert_int_equal(count, 1);
    assert_int_equal(data[0], 'x');
    end(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates_of_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
