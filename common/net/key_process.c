/* The server's side of the process that signs: keys of OpenSSL whose private half is elsewhere. */

/* The methods of RSA and EC keys are deprecated; their successor is a provider, a library. */
#define OPENSSL_API_COMPAT 10101

#include "common/net/key_process.h"

#include "common/base/fd_message.h"
#include "common/base/helper_process.h"
#include "common/net/key_signer.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A signer that dies takes the request that it has with it: then another one gets it. */
#define TRIES            4
#define PATIENCE_SECONDS 5

/* The data of a key of OpenSSL whose private half is in the process. */
struct remote {
    int socket;
    struct key_name name;
};

/* ---- requests ---- */

static bool receive_all(int socket, void *data, size_t size)
{
    char *rest = data;

    while (size > 0) {
        ssize_t count = recv(socket, rest, size, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        rest += count;
        size -= (size_t)count;
    }
    return true;
}

/* Sends a request with one end of a new pair of sockets. Returns the other end, where the response
 * arrives; or -1. */
static int send_request(int socket, const struct signer_request *request)
{
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int ends[2];
    bool sent;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    sent = setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           fd_message_send(socket, request, sizeof *request, &ends[1], 1);
    close(ends[1]);
    if (sent)
        return ends[0];
    close(ends[0]);
    return -1;
}

static bool ask_once(int socket, const struct signer_request *request, void *head, size_t size,
                     int *rest)
{
    *rest = send_request(socket, request);
    if (*rest < 0)
        return false;
    if (receive_all(*rest, head, size))
        return true;
    close(*rest);
    return false;
}

/* Sends a request and receives the first bytes of the response. The others are to be read from
 * `rest`, which the caller closes. */
static bool ask(int socket, const struct signer_request *request, void *head, size_t size,
                int *rest)
{
    for (int i = 0; i < TRIES; i++) {
        if (ask_once(socket, request, head, size, rest))
            return true;
        if (errno == EAGAIN || errno == EPIPE)
            return false; /* no signer answers in time, or there is none */
    }
    return false;
}

/* Returns the length of the signature; 0 on failure. */
static unsigned sign(const struct remote *remote, struct signer_request *request,
                     const unsigned char *data, size_t size, unsigned char *signature)
{
    unsigned length = 0;
    int rest;

    if (size > sizeof request->data)
        return 0;
    request->name = remote->name;
    request->length = (unsigned)size;
    memcpy(request->data, data, size);
    if (!ask(remote->socket, request, &length, sizeof length, &rest))
        return 0;
    if (length > SIGNER_DATA_LIMIT || !receive_all(rest, signature, length))
        length = 0;
    close(rest);
    return length;
}

/* ---- RSA ---- */

/* For TLS 1.2 with PKCS #1. */
static int sign_rsa(int type, const unsigned char *digest, unsigned size, unsigned char *signature,
                    unsigned *length, const RSA *rsa)
{
    struct signer_request request = {.operation = SIGNER_RSA, .type = type};

    *length = sign(RSA_get_app_data(rsa), &request, digest, size, signature);
    return *length > 0;
}

/* For PSS: OpenSSL has made the block, and the signer checks that it is one. */
static int sign_block(int size, const unsigned char *block, unsigned char *signature, RSA *rsa,
                      int padding)
{
    struct signer_request request = {.operation = SIGNER_RSA_PSS};
    unsigned length;

    if (padding != RSA_NO_PADDING)
        return -1;
    length = sign(RSA_get_app_data(rsa), &request, block, (size_t)size, signature);
    return length > 0 ? (int)length : -1;
}

static int finish_rsa(RSA *rsa)
{
    free(RSA_get_app_data(rsa));
    return RSA_meth_get_finish(RSA_PKCS1_OpenSSL())(rsa);
}

static RSA_METHOD *make_rsa_method(void)
{
    RSA_METHOD *method = RSA_meth_dup(RSA_PKCS1_OpenSSL());

    if (method != NULL && RSA_meth_set_sign(method, sign_rsa) == 1 &&
        RSA_meth_set_priv_enc(method, sign_block) == 1 &&
        RSA_meth_set_finish(method, finish_rsa) == 1)
        return method;
    RSA_meth_free(method);
    return NULL;
}

/* Puts a key with the public half of `public` into `key`. */
static bool wrap_rsa(EVP_PKEY *key, EVP_PKEY *public, const RSA_METHOD *method,
                     struct remote *remote)
{
    const RSA *half = EVP_PKEY_get0_RSA(public);
    RSA *rsa = RSA_new();
    BIGNUM *n = half != NULL ? BN_dup(RSA_get0_n(half)) : NULL;
    BIGNUM *e = half != NULL ? BN_dup(RSA_get0_e(half)) : NULL;

    if (rsa != NULL && RSA_set_method(rsa, method) == 1 && RSA_set0_key(rsa, n, e, NULL) == 1 &&
        RSA_set_app_data(rsa, remote) == 1 && EVP_PKEY_assign_RSA(key, rsa) == 1)
        return true;
    if (rsa == NULL || RSA_get0_n(rsa) == NULL) {
        BN_free(n);
        BN_free(e);
    }
    if (rsa != NULL)
        RSA_set_app_data(rsa, NULL);
    RSA_free(rsa);
    return false;
}

/* ---- EC ---- */

static int sign_ec(int type, const unsigned char *digest, int size, unsigned char *signature,
                   unsigned *length, const BIGNUM *inverse, const BIGNUM *r, EC_KEY *key)
{
    struct signer_request request = {.operation = SIGNER_EC};

    (void)type;
    (void)inverse;
    (void)r;
    *length = sign(EC_KEY_get_ex_data(key, 0), &request, digest, (size_t)size, signature);
    return *length > 0;
}

static void finish_ec(EC_KEY *key)
{
    free(EC_KEY_get_ex_data(key, 0));
}

static EC_KEY_METHOD *make_ec_method(void)
{
    EC_KEY_METHOD *method = EC_KEY_METHOD_new(EC_KEY_OpenSSL());

    if (method == NULL)
        return NULL;
    EC_KEY_METHOD_set_sign(method, sign_ec, NULL, NULL);
    EC_KEY_METHOD_set_init(method, NULL, finish_ec, NULL, NULL, NULL, NULL);
    return method;
}

static bool wrap_ec(EVP_PKEY *key, EVP_PKEY *public, const EC_KEY_METHOD *method,
                    struct remote *remote)
{
    const EC_KEY *half = EVP_PKEY_get0_EC_KEY(public);
    EC_KEY *ec = half != NULL ? EC_KEY_dup(half) : NULL;

    if (ec != NULL && EC_KEY_set_method(ec, method) == 1 &&
        EC_KEY_set_ex_data(ec, 0, remote) == 1 && EVP_PKEY_assign_EC_KEY(key, ec) == 1)
        return true;
    if (ec != NULL)
        EC_KEY_set_ex_data(ec, 0, NULL);
    EC_KEY_free(ec);
    return false;
}

/* ---- */

struct evp_pkey_st *key_process_key(const struct key_process *process, struct x509_st *certificate)
{
    EVP_PKEY *public = X509_get0_pubkey(certificate), *key = EVP_PKEY_new();
    struct remote *remote = calloc(1, sizeof *remote);
    int type = public != NULL ? EVP_PKEY_get_base_id(public) : EVP_PKEY_NONE;
    bool good =
        key != NULL && remote != NULL && public != NULL && key_signer_name(public, &remote->name);

    if (good) {
        remote->socket = process->socket;
        good = type == EVP_PKEY_RSA  ? wrap_rsa(key, public, process->rsa, remote)
               : type == EVP_PKEY_EC ? wrap_ec(key, public, process->ec, remote)
                                     : false;
    }
    if (good)
        return key;
    free(remote);
    EVP_PKEY_free(key);
    return NULL;
}

bool key_process_open(struct key_process *process, const char *const paths[KEY_READER_FILES])
{
    int sockets[2];

    *process = (struct key_process){.socket = -1, .rsa = make_rsa_method(), .ec = make_ec_method()};
    if (process->rsa == NULL || process->ec == NULL ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return false;
    if (!helper_process_start("key_process", sockets[1], key_signer_supervise, paths,
                              HELPER_PROCESS_ONLY)) {
        close(sockets[0]);
        close(sockets[1]);
        return false;
    }
    close(sockets[1]);
    process->socket = sockets[0];
    return true;
}

bool key_process_load(const struct key_process *process, const struct key_name *used,
                      struct key_report *report, struct key_file *certificate)
{
    struct signer_request request = {.operation = SIGNER_LOAD};
    int rest;
    bool good;

    if (used != NULL)
        request.name = *used;
    if (!ask(process->socket, &request, report, sizeof *report, &rest))
        return false;
    certificate->error = report->certificate_error;
    certificate->length = report->length;
    good = report->length <= sizeof certificate->data &&
           receive_all(rest, certificate->data, report->length);
    close(rest);
    return good;
}

void key_process_close(struct key_process *process)
{
    if (process->socket >= 0)
        close(process->socket);
    process->socket = -1;
    RSA_meth_free(process->rsa);
    if (process->ec != NULL)
        EC_KEY_METHOD_free(process->ec);
    process->rsa = NULL;
    process->ec = NULL;
}
