/* Fuzzes TLS: the bytes of a client before, during and after the handshake. Only requests that
 * arrive undamaged get responses, the same as without TLS. */
#include "common/net/key_reader.h"
#include "common/net/tls.h"
#include "common/net/transport_tls.h"
#include "tests/fuzz.h"
#include "tests/fuzz_service.h"
#include "tests/script.h"
#include "tests/tls_files.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP_LIMIT 4000

/* The ways to use an input; its first byte chooses one. */
enum manner {
    MANNER_RAW,     /* the input is all that the client sends */
    MANNER_DAMAGED, /* it changes bytes of what a correct client sends */
    MANNER_REQUEST, /* it is what a correct client encrypts */
    MANNERS,
};

struct talk {
    SSL *ssl;
    BIO *to_client, *from_client;
    int socket; /* of the client's side */
    struct connection connection;
    bool ended; /* the server has */
    const uint8_t *damage;
    size_t damage_size;
    size_t sent;            /* bytes of the wire so far */
    struct buffer received; /* decrypted */
};

static char directory[] = "/tmp/fuzz_tls.XXXXXX";
static struct tls *tls;
static SSL_CTX *clients;

static void remove_files(void)
{
    char command[64];

    SSL_CTX_free(clients);
    tls_close(tls);
    snprintf(command, sizeof command, "rm -r %s", directory);
    require(system(command) == 0, "the directory can be removed");
}

static void set_up(void)
{
    static char certificate[64], key[64];

    require(mkdtemp(directory) != NULL, "there is a directory");
    require(tls_files_make(directory, certificate, key, sizeof key), "there is a certificate");
    tls = tls_open(&(struct key_files){.paths = {certificate, key}}, false);
    clients = SSL_CTX_new(TLS_client_method());
    require(tls != NULL && clients != NULL, "TLS is ready");
    atexit(remove_files);
}

/* Steps the server as far as it goes without more input. */
static void step(struct talk *talk)
{
    if (!talk->ended)
        talk->ended = connection_step(&talk->connection) == NEED_NOTHING;
}

/* Sends the bytes to the server in pieces, whose lengths are those of the script. */
static void send_pieces(struct talk *talk, char *bytes, size_t size)
{
    for (size_t i = 0; i + 3 <= talk->damage_size; i += 3) {
        size_t at = ((size_t)talk->damage[i] << 8 | talk->damage[i + 1]) % 2048;
        if (at >= talk->sent && at - talk->sent < size)
            bytes[at - talk->sent] ^= (char)talk->damage[i + 2];
    }
    talk->sent += size;
    while (size > 0 && !talk->ended) {
        size_t piece = script_cut();
        ssize_t count =
            send(talk->socket, bytes, piece < size ? piece : size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count <= 0)
            return;
        bytes += count;
        size -= (size_t)count;
        step(talk);
    }
}

/* Moves bytes both ways. Returns false if there were none. */
static bool pump(struct talk *talk)
{
    char bytes[4096];
    ssize_t count;
    bool moved = false;
    int length = BIO_read(talk->from_client, bytes, sizeof bytes);

    if (length > 0)
        send_pieces(talk, bytes, (size_t)length);
    step(talk);
    while ((count = recv(talk->socket, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        BIO_write(talk->to_client, bytes, (int)count);
        moved = true;
    }
    return moved || length > 0;
}

/* Reads what the server has sent. Returns false if there was nothing. */
static bool receive(struct talk *talk)
{
    char bytes[4096];
    int length = SSL_read(talk->ssl, bytes, sizeof bytes);

    if (length > 0)
        buffer_add(&talk->received, (struct text){bytes, (size_t)length});
    return length > 0;
}

/* A correct client that sends the bytes. */
static void run_client(struct talk *talk, const char *bytes, size_t size)
{
    bool sent = size == 0;

    talk->ssl = SSL_new(clients);
    talk->to_client = BIO_new(BIO_s_mem());
    talk->from_client = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(talk->to_client, -1);
    SSL_set_bio(talk->ssl, talk->to_client, talk->from_client);
    SSL_set_connect_state(talk->ssl);
    for (int steps = 0; steps < STEP_LIMIT; steps++) {
        if (!SSL_is_init_finished(talk->ssl))
            SSL_do_handshake(talk->ssl);
        else if (!sent)
            sent = SSL_write(talk->ssl, bytes, (int)size) == (int)size;
        if (!pump(talk) && !receive(talk))
            break;
        while (receive(talk))
            continue;
        ERR_clear_error();
    }
    SSL_free(talk->ssl);
}

/* Opens a connection, lets the client talk, and closes it. */
static struct text run_talk(struct talk *talk, const char *bytes, size_t size, enum manner manner)
{
    struct service_context context = fuzz_context(&transport_tls, PROTOCOL_PERSISTENT);
    struct exchange exchange;
    size_t room = 65536 + 256 * size;
    int ends[2];

    context.tls = tls;
    context.scheme = SCHEME_HTTPS;
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
    talk->socket = ends[1];
    talk->received = (struct buffer){.data = malloc(room), .capacity = room};
    require(talk->received.data != NULL, "there is memory");
    connection_open(&talk->connection, &context, ends[0], fuzz_now);
    connection_lend(&talk->connection, &exchange);
    if (manner == MANNER_RAW) {
        char *copy = copy_of(bytes, size);
        send_pieces(talk, copy, size);
        free(copy);
    } else {
        run_client(talk, bytes, size);
    }
    shutdown(talk->socket, SHUT_WR);
    for (int steps = 0; !talk->ended; steps++) {
        char drop[4096];
        require(steps < STEP_LIMIT, "a connection ends when the client has");
        step(talk);
        while (recv(talk->socket, drop, sizeof drop, MSG_DONTWAIT) > 0)
            continue;
    }
    connection_close(&talk->connection);
    close(talk->socket);
    return (struct text){talk->received.data, talk->received.length};
}

/* Returns what the client gets for the same bytes without TLS. */
static struct text serve_plainly(const char *bytes, size_t size)
{
    struct service_context context = fuzz_context(&scripted, PROTOCOL_PERSISTENT);
    size_t room = 65536 + 256 * size;
    struct connection connection;
    struct exchange exchange;

    context.scheme = SCHEME_HTTPS;
    script_start(bytes, size, size > 0 ? size : 1);
    script.received = (struct buffer){.data = malloc(room), .capacity = room};
    require(script.received.data != NULL, "there is memory");
    connection_open(&connection, &context, -1, fuzz_now);
    connection_lend(&connection, &exchange);
    while (connection_step(&connection) != NEED_NOTHING)
        continue;
    connection_close(&connection);
    return (struct text){script.received.data, script.received.length};
}

/* The client gets nothing but a beginning of what it would get without TLS. */
static void check_received(struct text received, const char *bytes, size_t size, bool all)
{
    struct text plain = serve_plainly(bytes, size);

    require(received.length <= plain.length &&
                memcmp(received.data, plain.data, received.length) == 0,
            "a client gets the same responses by TLS");
    require(!all || received.length == plain.length, "it gets all of them");
    free((char *)plain.data);
}

static bool has_expectation(const char *bytes, size_t size)
{
    for (size_t i = 0; i + 6 <= size; i++)
        if (strncasecmp(bytes + i, "expect", 6) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct talk talk = {.ended = false};
    enum manner manner;
    struct text received;

    if (tls == NULL)
        set_up();
    if (size < 1 || size > 8000)
        return 0;
    manner = data[0] % MANNERS;
    script_start((const char *)data, size, 1 + (size_t)data[0] * 8);
    data++;
    size--;
    if (manner == MANNER_DAMAGED) {
        talk.damage = data;
        talk.damage_size = size;
        received = run_talk(&talk, request, sizeof request - 1, manner);
        check_received(received, request, sizeof request - 1, false);
    } else {
        received = run_talk(&talk, (const char *)data, size, manner);
        require(manner == MANNER_REQUEST || received.length == 0, "who has no keys gets nothing");
        if (manner == MANNER_REQUEST && !has_expectation((const char *)data, size))
            check_received(received, (const char *)data, size, true);
    }
    free((char *)received.data);
    return 0;
}

#define REQUEST "\x02"
#define DAMAGED "\x01"
#define RAW     "\x03"
const char *const fuzz_seeds[] = {
    REQUEST "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "\xfeGET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
    "helloGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "\xfdz",
    DAMAGED "\1\1\1",
    "\xfa\3\1\2\4\1\7",
    RAW "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    RAW "\x16\x03\x01\x01\x02\x01\x01\x01\xfc\x03\x03",
    "\xff\x15\x03\x03\x01\x02\x02\x28",
};
const size_t fuzz_seed_count = COUNT_OF(fuzz_seeds);
const char fuzz_subject[] = "what a client of TLS sends";
const long fuzz_rounds = 500;
