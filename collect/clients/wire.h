/* The connections of a client: by TCP, by TLS, or by UDP datagrams.
 *
 * A wire never waits: it says what it needs to go on. It does not check certificates, since the
 * study makes its own. By TLS each connection has a new session, or resumes one with the last
 * ticket that the server gave to this wire. A UDP socket stays open until something fails, so that
 * the client keeps its port. */
#ifndef COLLECT_WIRE_H
#define COLLECT_WIRE_H

#include "tool.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum wire_kind { WIRE_TCP, WIRE_TLS, WIRE_UDP };
enum wire_state { WIRE_READY, WIRE_WANTS_READ, WIRE_WANTS_WRITE, WIRE_FAILED };

/* The state that all wires of a program share. */
struct wires {
    enum wire_kind kind;
    bool resume; /* TLS: resume the session with a ticket */
    struct sockaddr_in server;
    SSL_CTX *context;
};

struct wire {
    int socket;       /* -1: none */
    in_addr_t source; /* the address that it comes from; 0: any */
    SSL *tls;
    SSL_SESSION *ticket;
};

/* Reads the address of a server, [ADDRESS:]PORT; without ADDRESS it is that of this machine. */
static inline struct sockaddr_in wire_server(const char *text)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *port = strrchr(text, ':');
    char host[INET_ADDRSTRLEN] = "";

    if (port && port - text < (ptrdiff_t)sizeof(host))
        memcpy(host, text, (size_t)(port - text));
    if (port && inet_pton(AF_INET, host, &server.sin_addr) != 1)
        errx(2, "a server is [ADDRESS:]PORT, with an IPv4 address, not '%s'", text);
    server.sin_port = htons((in_port_t)tool_number(port ? port + 1 : text, 1, 65535, "PORT"));
    return server;
}

/* Keeps the ticket that the server has sent; the wire owns the session from then on. */
static int wire_take_ticket(SSL *tls, SSL_SESSION *ticket)
{
    struct wire *wire = SSL_get_app_data(tls);
    SSL_SESSION_free(wire->ticket);
    wire->ticket = ticket;
    return 1;
}

static inline void wires_open(struct wires *wires)
{
    if (wires->kind != WIRE_TLS)
        return;
    wires->context = SSL_CTX_new(TLS_client_method());
    if (!wires->context || SSL_CTX_set_min_proto_version(wires->context, TLS1_2_VERSION) != 1)
        errx(1, "cannot begin with TLS");
    SSL_CTX_set_verify(wires->context, SSL_VERIFY_NONE, NULL);
    if (!wires->resume)
        return;
    SSL_CTX_set_session_cache_mode(wires->context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(wires->context, wire_take_ticket);
}

static inline void wires_close(struct wires *wires)
{
    SSL_CTX_free(wires->context);
}

static inline void wire_close(struct wire *wire)
{
    if (wire->tls) {
        /* Otherwise the library would not resume a session that was not closed. */
        SSL_set_shutdown(wire->tls, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(wire->tls);
    }
    wire->tls = NULL;
    if (wire->socket >= 0)
        close(wire->socket);
    wire->socket = -1;
}

/* Closes it for good. */
static inline void wire_end(struct wire *wire)
{
    wire_close(wire);
    SSL_SESSION_free(wire->ticket);
    wire->ticket = NULL;
}

static inline void wire_encrypt(const struct wires *wires, struct wire *wire)
{
    const int yes = 1;
    setsockopt(wire->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    wire->tls = SSL_new(wires->context);
    if (!wire->tls || SSL_set_fd(wire->tls, wire->socket) != 1)
        errx(1, "cannot make a TLS connection");
    SSL_set_app_data(wire->tls, wire);
    if (wire->ticket)
        SSL_set_session(wire->tls, wire->ticket);
    SSL_set_connect_state(wire->tls);
}

/* Takes an address of this machine. Its port is chosen when the wire connects. */
static inline void wire_bind(const struct wire *wire)
{
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = wire->source};
    int later = 1;

    if (setsockopt(wire->socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof(later)) < 0 ||
        bind(wire->socket, (struct sockaddr *)&source, sizeof(source)) < 0)
        err(1, "cannot take a source address");
}

/* Makes a socket, and begins to connect it. Returns false if the server refuses. */
static inline bool wire_open(const struct wires *wires, struct wire *wire)
{
    int type = wires->kind == WIRE_UDP ? SOCK_DGRAM : SOCK_STREAM;
    wire->socket = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (wire->socket < 0)
        err(1, "cannot make a socket");
    if (wire->source)
        wire_bind(wire);
    if (connect(wire->socket, (const struct sockaddr *)&wires->server, sizeof(wires->server)) < 0 &&
        errno != EINPROGRESS)
        return false;
    if (wires->kind == WIRE_TLS)
        wire_encrypt(wires, wire);
    return true;
}

/* Continues to connect, until the wire is ready for a request. */
static inline enum wire_state wire_greet(struct wire *wire)
{
    int error = 0, done;
    socklen_t size = sizeof(error);
    getsockopt(wire->socket, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error)
        return WIRE_FAILED;
    if (!wire->tls)
        return WIRE_READY;
    ERR_clear_error();
    done = SSL_do_handshake(wire->tls);
    if (done == 1)
        return WIRE_READY;
    switch (SSL_get_error(wire->tls, done)) {
    case SSL_ERROR_WANT_READ:
        return WIRE_WANTS_READ;
    case SSL_ERROR_WANT_WRITE:
        return WIRE_WANTS_WRITE;
    default:
        return WIRE_FAILED;
    }
}

/* Sends a request, which is small enough to leave at once. */
static inline bool wire_send(struct wire *wire, const char *bytes, int count)
{
    if (wire->tls)
        return SSL_write(wire->tls, bytes, count) == count;
    return send(wire->socket, bytes, (size_t)count, MSG_NOSIGNAL) == count;
}

/* As recv(): 0 is the end, and EAGAIN says that nothing has arrived. */
static inline ssize_t wire_receive(struct wire *wire, char *bytes, int size)
{
    int count;
    if (!wire->tls)
        return recv(wire->socket, bytes, (size_t)size, 0);
    ERR_clear_error();
    count = SSL_read(wire->tls, bytes, size);
    if (count > 0)
        return count;
    switch (SSL_get_error(wire->tls, count)) {
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    default:
        errno = ECONNRESET;
        return -1;
    }
}

static inline bool wire_resumed(const struct wire *wire)
{
    return wire->tls && SSL_session_reused(wire->tls) == 1;
}

#endif
