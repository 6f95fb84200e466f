/* Fuzzes datagrams: one that is a whole request gets one response, the same as by a stream and no
 * longer than is allowed; any other gets none. */
#include "common/http/is_one_request.h"
#include "common/net/datagram.h"
#include "common/net/transport_datagram.h"
#include "tests/fuzz.h"
#include "tests/fuzz_service.h"
#include "tests/script.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

static int server = -1, client = -1; /* UDP sockets of loopback */
static union address client_address;

static int open_socket(union address *address)
{
    socklen_t size = sizeof address->v4;
    int socket_made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    address->v4 = (struct sockaddr_in){.sin_family = AF_INET};
    address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(socket_made >= 0 && bind(socket_made, &address->any, size) == 0 &&
                getsockname(socket_made, &address->any, &size) == 0,
            "there is a socket");
    return socket_made;
}

static void set_up(void)
{
    union address server_address;

    server = open_socket(&server_address);
    client = open_socket(&client_address);
    require(connect(client, &server_address.any, sizeof server_address.v4) == 0,
            "the client knows the server");
}

/* Serves what the descriptor holds. Returns how many bytes the response has, sent or not. */
static size_t serve(int descriptor)
{
    const struct service_context context = fuzz_context(&transport_datagram, PROTOCOL_PERSISTENT);
    const struct datagram *datagram;
    struct connection connection;
    struct exchange exchange;
    size_t length;

    connection_open(&connection, &context, descriptor, fuzz_now);
    connection_lend(&connection, &exchange);
    require(connection_step(&connection) == NEED_NOTHING, "a datagram is served in one step");
    datagram = connection.transport.own;
    length = datagram != NULL ? datagram->response.length : 0;
    connection_close(&connection);
    return length;
}

/* Returns the status of the first response to the same bytes in a stream. */
static int status_by_stream(const char *bytes, size_t size)
{
    const struct service_context context = fuzz_context(&scripted, PROTOCOL_PERSISTENT);
    char space[65536];
    struct connection connection;
    struct exchange exchange;

    script_start(bytes, size, size);
    script.received = (struct buffer){.data = space, .capacity = sizeof space};
    connection_open(&connection, &context, -1, fuzz_now);
    connection_lend(&connection, &exchange);
    while (connection_step(&connection) != NEED_NOTHING)
        continue;
    connection_close(&connection);
    return script.received.length > 12 ? atoi(space + 9) : 0;
}

/* A client of this machine: the datagram goes through the kernel. */
static void try_near(const char *bytes, size_t size)
{
    static char response[DATAGRAM_RESPONSE_LIMIT + 1];
    bool whole = is_one_request((struct text){bytes, size});
    ssize_t length;
    int status;

    require(send(client, bytes, size, 0) == (ssize_t)size, "a datagram can be sent");
    serve(datagram_receive(server));
    length = recv(client, response, sizeof response - 1, MSG_DONTWAIT);
    require((length >= 0) == whole, "a request gets a response, and nothing else does");
    if (!whole)
        return;
    response[length] = '\0';
    require(length > 12 && strncmp(response, "HTTP/1.1 ", 9) == 0, "it is a response");
    require(recv(client, response + length, 1, MSG_DONTWAIT) < 0, "there is no second one");
    status = status_by_stream(bytes, size);
    require(atoi(response + 9) == status || status == 100 || atoi(response + 9) == 501,
            "by a stream the response is the same");
}

/* A client elsewhere, whose address may be forged. The kernel refuses to send to it from here. */
static void try_far(const char *bytes, size_t size)
{
    struct envelope envelope = {.socket = server, .length = size};
    int ends[2];

    envelope.peer.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(9)};
    envelope.peer.v4.sin_addr.s_addr = htonl(0xC0000201); /* 192.0.2.1, of no network */
    require(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 &&
                write(ends[1], &envelope, sizeof envelope) == (ssize_t)sizeof envelope &&
                write(ends[1], bytes, size) == (ssize_t)size,
            "there is a pipe");
    close(ends[1]);
    require(serve(ends[0]) <= DATAGRAM_AMPLIFICATION * size,
            "a response is not longer than an address that may be forged allows");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy;

    if (server < 0)
        set_up();
    if (size > 40000)
        return 0;
    copy = copy_of((const char *)data, size);
    try_near(copy, size);
    try_far(copy, size);
    free(copy);
    return 0;
}

const char *const fuzz_seeds[] = {
    "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: 0123456789012345678901234567890123456789\r\n\r\n",
    "HEAD / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1,5-,-3\r\nExpect: 100-continue\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"a\"\r\n\r\n",
};
const size_t fuzz_seed_count = COUNT_OF(fuzz_seeds);
const char fuzz_subject[] = "datagrams";
const long fuzz_rounds = 12500;
