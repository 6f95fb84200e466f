/* TLS by OpenSSL as a client: it checks the certificate of the server, and its name. */
#include "common/net/tls_client.h"

#include "common/net/address.h"
#include "common/net/tls.h"
#include "common/net/tls_bio.h"

#include <err.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No host has a longer name. */
#define NAME_LIMIT 256

struct tls_client {
    SSL_CTX *context;
    BIO_METHOD *wire;
    char host[NAME_LIMIT];
    bool is_name; /* not an address */
};

static bool expect_host(const struct tls_client *client)
{
    X509_VERIFY_PARAM *parameters = SSL_CTX_get0_param(client->context);

    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return client->is_name ? X509_VERIFY_PARAM_set1_host(parameters, client->host, 0) == 1
                           : X509_VERIFY_PARAM_set1_ip_asc(parameters, client->host) == 1;
}

/* SSL_OP_IGNORE_UNEXPECTED_EOF is not set: a session that ends without an alert has been cut off,
 * perhaps by somebody else. */
static bool configure(const struct tls_client *client)
{
    static const unsigned char protocol[] = "\x08http/1.1";
    SSL_CTX *context = client->context;

    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(context, TLS_CIPHERS) == 1 &&
           SSL_CTX_set_alpn_protos(context, protocol, sizeof protocol - 1) == 0 &&
           expect_host(client);
}

static bool open_all(struct tls_client *client, const char *authorities)
{
    if (!tls_prepare()) {
        warnx("cannot prepare TLS: there is no memory");
        return false;
    }
    tzset(); /* OpenSSL does it when it checks dates, in the sandbox, where the file is not read */
    ERR_clear_error();
    client->wire = tls_bio_method();
    client->context = SSL_CTX_new(TLS_client_method());
    if (client->wire == NULL || client->context == NULL || !configure(client)) {
        warnx("cannot prepare TLS: %s", tls_reason());
        return false;
    }
    if (SSL_CTX_load_verify_file(client->context, authorities) == 1)
        return true;
    warnx("cannot read the certificates of authorities '%s': %s", authorities, tls_reason());
    return false;
}

struct tls_client *tls_client_open(const char *authorities, struct text host)
{
    struct tls_client *client = calloc(1, sizeof *client);
    union address address;

    if (client == NULL || host.length >= sizeof client->host) {
        warnx("cannot prepare TLS: %s",
              client == NULL ? "there is no memory" : "a name is too long");
        free(client);
        return NULL;
    }
    memcpy(client->host, host.data, host.length);
    client->is_name = !address_read(host, 0, &address);
    if (open_all(client, authorities))
        return client;
    tls_client_close(client);
    return NULL;
}

void tls_client_close(struct tls_client *client)
{
    SSL_CTX_free(client->context);
    BIO_meth_free(client->wire);
    free(client);
}

struct ssl_st *tls_client_begin(const struct tls_client *client, struct tls_bio *wire)
{
    SSL *session = SSL_new(client->context);
    BIO *bio = tls_bio_make(client->wire, wire);

    if (session == NULL || bio == NULL ||
        (client->is_name && SSL_set_tlsext_host_name(session, client->host) != 1)) {
        SSL_free(session);
        BIO_free(bio);
        return NULL;
    }
    SSL_set_bio(session, bio, bio);
    SSL_set_connect_state(session);
    return session;
}

const char *tls_client_problem(const struct ssl_st *session)
{
    switch (SSL_get_verify_result(session)) {
    case X509_V_OK:
        return "No TLS session with the origin could be made.";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "The certificate of the origin is for another name.";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "The certificate of the origin is not valid at this time.";
    default:
        return "The certificate of the origin is not trusted.";
    }
}
