/* Handshakes of a server with itself, before it forks. */
#include "common/net/tls_warmup.h"

#include <openssl/ssl.h>

/* No handshake takes more flights of messages. */
#define FLIGHTS 8

struct handshake {
    int version;
    const char *groups; /* that the client offers */
};

static const struct handshake handshakes[] = {
    {TLS1_3_VERSION, "X25519:P-256"},
    {TLS1_3_VERSION, "P-256"},
    {TLS1_2_VERSION, "X25519:P-256"},
};

static bool connect_pair(SSL *server, SSL *client)
{
    BIO *ends[2];

    if (BIO_new_bio_pair(&ends[0], 0, &ends[1], 0) != 1)
        return false;
    SSL_set_bio(server, ends[0], ends[0]);
    SSL_set_bio(client, ends[1], ends[1]);
    SSL_set_accept_state(server);
    SSL_set_connect_state(client);
    return true;
}

static bool shake_hands(SSL *server, SSL *client)
{
    for (int i = 0; i < FLIGHTS && !(SSL_is_init_finished(server) && SSL_is_init_finished(client));
         i++) {
        SSL_do_handshake(client);
        SSL_do_handshake(server);
    }
    return SSL_is_init_finished(server) && SSL_is_init_finished(client);
}

/* The client reads the tickets together with a byte of data. */
static bool talk(SSL *server, SSL *client)
{
    char byte = 'x';
    int result = -1;

    if (SSL_write(client, &byte, 1) != 1 || SSL_read(server, &byte, 1) != 1 ||
        SSL_write(server, &byte, 1) != 1)
        return false;
    for (int i = 0; i < FLIGHTS && result != 1; i++)
        result = SSL_read(client, &byte, 1);
    SSL_shutdown(server);
    SSL_shutdown(client);
    return result == 1;
}

/* Serves one client, which offers `*session` if there is one. `*session` becomes its session. */
static bool serve(SSL_CTX *context, SSL_CTX *clients, SSL_SESSION **session)
{
    SSL *server = SSL_new(context), *client = SSL_new(clients);
    bool good = server != NULL && client != NULL && connect_pair(server, client) &&
                (*session == NULL || SSL_set_session(client, *session) == 1) &&
                shake_hands(server, client) && talk(server, client);

    SSL_SESSION_free(*session);
    *session = good ? SSL_get1_session(client) : NULL;
    SSL_free(server);
    SSL_free(client);
    return good;
}

static bool try_handshake(SSL_CTX *context, SSL_CTX *clients, const struct handshake *handshake)
{
    SSL_SESSION *session = NULL;
    bool good = SSL_CTX_set_min_proto_version(clients, handshake->version) == 1 &&
                SSL_CTX_set_max_proto_version(clients, handshake->version) == 1 &&
                SSL_CTX_set1_groups_list(clients, handshake->groups) == 1 &&
                serve(context, clients, &session) && serve(context, clients, &session);

    SSL_SESSION_free(session);
    return good;
}

bool tls_warmup_run(struct ssl_ctx_st *context)
{
    static const unsigned char protocol[] = "\x08http/1.1";
    SSL_CTX *clients = SSL_CTX_new(TLS_client_method());
    bool good =
        clients != NULL && SSL_CTX_set_alpn_protos(clients, protocol, sizeof protocol - 1) == 0;

    for (size_t i = 0; good && i < sizeof handshakes / sizeof handshakes[0]; i++)
        good = try_handshake(context, clients, &handshakes[i]);
    SSL_CTX_free(clients);
    return good;
}
