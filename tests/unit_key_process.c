/* Tests of key_process.c: signers and their channels, asked by a worker that is not honest. */
#include "common/net/key_process.h"

#include "common/base/fd_message.h"
#include "common/base/question.h"
#include "common/net/remote_key.h"
#include "tests/tls_files.h"
#include "tests/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 1
#define TRIES   10000

static struct {
    struct remote_key process;
    struct key_name name;
    EVP_PKEY *public;
} office;

static const unsigned char digest[32] = "a digest of some message";

/* ---- begin and end ---- */

static void read_certificate(const struct key_file *file)
{
    BIO *text = BIO_new_mem_buf(file->data, (int)file->length);
    X509 *certificate = PEM_read_bio_X509(text, NULL, NULL, NULL);

    assert_non_null(certificate);
    office.public = X509_get_pubkey(certificate);
    X509_free(certificate);
    BIO_free(text);
}

static void open_office(void)
{
    static char certificate[64], key[64];
    static struct key_file file;
    char directory[] = "/tmp/unit_key_process.XXXXXX";
    struct key_report report;

    assert_non_null(mkdtemp(directory));
    assert_true(tls_files_make(directory, certificate, key, sizeof key));
    assert_true(remote_key_open(
        &office.process, &(struct key_files){.paths = {certificate, key}, .workers = WORKERS}));
    assert_true(remote_key_load(&office.process, NULL, &report, &file));
    assert_int_equal(report.verdict, KEY_GOOD);
    office.name = report.name;
    read_certificate(&file);
    unlink(certificate);
    unlink(key);
    rmdir(directory);
}

static void close_office(void)
{
    remote_key_close(&office.process);
    EVP_PKEY_free(office.public);
}

/* ---- requests ---- */

static struct signer_request request_for(enum signer_operation operation)
{
    struct signer_request request = {.operation = operation, .name = office.name};

    if (operation == SIGNER_EC) {
        request.length = sizeof digest;
        memcpy(request.data, digest, sizeof digest);
    }
    return request;
}

static void send_request(int socket, enum signer_operation operation)
{
    const struct signer_request request = request_for(operation);
    size_t size = signer_request_size(request.length);

    assert_int_equal(send(socket, &request, size, MSG_NOSIGNAL), size);
}

/* Asks for a signer that stays at this socket, which is closed here. */
static void offer(int socket, int copies)
{
    const struct signer_request request = request_for(SIGNER_STAY);
    const int sockets[] = {socket, socket};

    assert_true(
        fd_message_send(office.process.socket, &request, signer_request_size(0), sockets, copies));
    close(socket);
}

static int open_channel(void)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    offer(ends[1], 1);
    return ends[0];
}

static bool has_signature(int socket)
{
    unsigned char signature[SIGNER_DATA_LIMIT];
    ssize_t length = recv(socket, signature, sizeof signature, 0);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(office.public, NULL);
    bool good = length > 0 && EVP_PKEY_verify_init(context) == 1 &&
                EVP_PKEY_verify(context, signature, (size_t)length, digest, sizeof digest) == 1;

    EVP_PKEY_CTX_free(context);
    return good;
}

static bool signs(int channel)
{
    const struct signer_request request = request_for(SIGNER_EC);

    return send(channel, &request, signer_request_size(request.length), MSG_NOSIGNAL) > 0 &&
           has_signature(channel);
}

/* One of the signers that all share. */
static bool signs_once(void)
{
    const struct signer_request request = request_for(SIGNER_EC);
    int response =
        question_send(office.process.socket, &request, signer_request_size(request.length));
    bool good = has_signature(response);

    close(response);
    return good;
}

/* Waits until the other end is closed. */
static bool is_closed(int socket)
{
    char byte;
    ssize_t length = recv(socket, &byte, 1, 0);

    return length == 0 || (length < 0 && errno == ECONNRESET);
}

/* ---- the cases ---- */

static void test_signs(void **state)
{
    int channel;

    (void)state;
    open_office();
    channel = open_channel();
    for (int i = 0; i < 100; i++)
        assert_true(signs(channel));
    assert_true(signs_once());
    close(channel);
    close_office();
}

static void test_other_requests(void **state)
{
    static const enum signer_operation refused[] = {SIGNER_LOAD, SIGNER_STAY, SIGNER_RSA,
                                                    SIGNER_RSA_PSS, SIGNER_MESSAGE};
    char byte;
    int channel;

    (void)state;
    open_office();
    channel = open_channel();
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        send_request(channel, refused[i]);
        assert_int_equal(recv(channel, &byte, 1, 0), 0); /* an empty message */
    }
    assert_true(signs(channel));
    close(channel);
    close_office();
}

static void test_no_requests(void **state)
{
    struct signer_request request = {.operation = SIGNER_EC, .length = SIGNER_DATA_LIMIT + 1};
    int channel;

    (void)state;
    open_office();
    channel = open_channel();
    request.name = office.name;
    assert_int_equal(send(channel, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(send(channel, &request, sizeof request, MSG_NOSIGNAL), sizeof request);
    request.length = ~0U;
    assert_int_equal(send(channel, &request, sizeof request, MSG_NOSIGNAL), sizeof request);
    request.length = 10;
    assert_int_equal(send(channel, &request, sizeof request, MSG_NOSIGNAL), sizeof request);
    assert_true(signs(channel));
    close(channel);
    close_office();
}

static void test_places(void **state)
{
    int first, second, tries = 0;

    (void)state;
    open_office();
    first = open_channel();
    assert_true(signs(first));
    for (int i = 0; i < 20; i++) {
        second = open_channel();
        assert_true(is_closed(second));
        close(second);
    }
    assert_true(signs_once());
    assert_true(signs(first));
    close(first);
    do { /* the place is free soon */
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        second = open_channel();
        first = signs(second);
        close(second);
    } while (!first && ++tries < TRIES);
    assert_true(first);
    close_office();
}

static void test_client(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    open_office();
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, length), 0);
    offer(accept4(listener, NULL, NULL, SOCK_CLOEXEC), 1);
    assert_true(is_closed(client));
    close(client);
    close(listener);
    close_office();
}

static void test_two_descriptors(void **state)
{
    int ends[2];

    (void)state;
    open_office();
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    offer(ends[1], 2);
    assert_true(is_closed(ends[0]));
    close(ends[0]);
    assert_true(signs_once());
    close_office();
}

static void test_end(void **state)
{
    int channel;

    (void)state;
    open_office();
    channel = open_channel();
    assert_true(signs(channel));
    close_office();
    assert_true(is_closed(channel));
    close(channel);
}

int main(void)
{
    unit_add("a signer stays at a channel, and others sign for all", test_signs, NULL);
    unit_add("a channel is for signatures alone", test_other_requests, NULL);
    unit_add("what is no whole request gets no response", test_no_requests, NULL);
    unit_add("no more signers stay than there are workers", test_places, NULL);
    unit_add("no signer stays with a client", test_client, NULL);
    unit_add("no signer keeps a second descriptor", test_two_descriptors, NULL);
    unit_add("no signer stays when the server has ended", test_end, NULL);
    return unit_run("key_process");
}
