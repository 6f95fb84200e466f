/* The server's side of the process that signs: keys of OpenSSL whose private half is elsewhere. */

/* The methods of RSA and EC keys are deprecated; their successor is a provider, a library. */
#define OPENSSL_API_COMPAT 10101

#include "common/net/remote_key.h"

#include "common/base/helper_process.h"
#include "common/base/question.h"
#include "common/net/key_process.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The request of a signer that dies is lost: it is sent again, and another signer gets it. */
#define TRIES 4
/* A worker without a signer of its own asks for one again after so many signatures. */
#define AFTER_REFUSAL 100

/* The data of a key of OpenSSL whose private half is in the process. */
struct remote {
    struct remote_key *process;
    struct key_name name;
    size_t limit; /* of the length of a signature */
};

/* ---- requests ---- */

static ssize_t receive(int socket, void *data, size_t size)
{
    ssize_t count;

    do
        count = recv(socket, data, size, 0);
    while (count < 0 && errno == EINTR);
    return count;
}

/* Sends a request and receives the first message of the response. Others are to be read from
 * `rest`, which the caller closes. Returns the length of the message; 0 if no signer responds. */
static size_t ask(int socket, const struct signer_request *request, void *response, size_t size,
                  int *rest)
{
    for (int i = 0; i < TRIES; i++) {
        ssize_t length;
        *rest = question_send(socket, request, signer_request_size(request->length));
        if (*rest < 0)
            return 0;
        length = receive(*rest, response, size);
        if (length > 0)
            return (size_t)length;
        close(*rest);
        if (length < 0)
            return 0; /* there was no response in time */
    }
    return 0;
}

/* ---- the channel ---- */

static void close_channel(struct remote_key *process)
{
    close(process->channel);
    process->channel = -1;
}

static bool has_channel(struct remote_key *process)
{
    const struct signer_request request = {.operation = SIGNER_STAY};

    if (process->channel < 0 && process->until_channel >= 0 && process->until_channel-- == 0) {
        process->until_channel = AFTER_REFUSAL; /* unless this one serves */
        process->channel = question_send(process->socket, &request, signer_request_size(0));
    }
    return process->channel >= 0;
}

/* Returns the length of the response; 0 if no signer at the channel responds: then others can be
 * asked; less than 0 if there is no response in time. If a signer that served dies, the worker asks
 * for another channel at once. */
static ssize_t ask_by_channel(struct remote_key *process, const struct signer_request *request,
                              void *response, size_t size)
{
    size_t whole = signer_request_size(request->length);
    ssize_t length = 0;
    bool late;

    if (!has_channel(process))
        return 0;
    if (send(process->channel, request, whole, MSG_NOSIGNAL) == (ssize_t)whole)
        length = receive(process->channel, response, size);
    if (length > 0) {
        process->until_channel = 0;
        return length;
    }
    late = length < 0 && errno == EAGAIN; /* a signer that does not stay resets the channel */
    close_channel(process);
    return late ? -1 : 0;
}

/* ---- signatures ---- */

/* Returns the length of the signature; 0 on failure. */
static unsigned sign(const struct remote *remote, struct signer_request *request,
                     const unsigned char *data, size_t size, unsigned char *signature)
{
    ssize_t length;
    int rest;

    if (size > sizeof request->data)
        return 0;
    request->name = remote->name;
    request->length = (unsigned)size;
    memcpy(request->data, data, size);
    length = ask_by_channel(remote->process, request, signature, remote->limit);
    if (length != 0)
        return length > 0 ? (unsigned)length : 0;
    length = (ssize_t)ask(remote->process->socket, request, signature, remote->limit, &rest);
    if (length > 0)
        close(rest);
    return (unsigned)length;
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

/* ---- Ed25519 and Ed448 ---- */

/* Keys of these types have no methods of their own: a method belongs to the type. The key carries
 * the process. */
static const int message_types[REMOTE_KEY_MESSAGE_TYPES] = {EVP_PKEY_ED25519, EVP_PKEY_ED448};

static int sign_message(EVP_MD_CTX *context, unsigned char *signature, size_t *length,
                        const unsigned char *message, size_t size)
{
    EVP_PKEY *key = EVP_PKEY_CTX_get0_pkey(EVP_MD_CTX_get_pkey_ctx(context));
    struct signer_request request = {.operation = SIGNER_MESSAGE};
    struct remote remote = {.process = EVP_PKEY_get_ex_data(key, 0),
                            .limit = (size_t)EVP_PKEY_get_size(key)};

    if (signature == NULL) {
        *length = remote.limit;
        return 1;
    }
    if (remote.process == NULL || *length < remote.limit || !key_process_name(key, &remote.name))
        return 0;
    *length = sign(&remote, &request, message, size, signature);
    return *length > 0;
}

/* Sets the method of all keys of a type in this process. */
static EVP_PKEY_METHOD *make_message_method(int type)
{
    const EVP_PKEY_METHOD *usual = EVP_PKEY_meth_find(type);
    EVP_PKEY_METHOD *method;
    int flags;

    if (usual == NULL)
        return NULL;
    EVP_PKEY_meth_get0_info(NULL, &flags, usual);
    method = EVP_PKEY_meth_new(type, flags);
    if (method == NULL)
        return NULL;
    EVP_PKEY_meth_copy(method, usual);
    EVP_PKEY_meth_set_digestsign(method, sign_message);
    if (EVP_PKEY_meth_add0(method) == 1)
        return method;
    EVP_PKEY_meth_free(method);
    return NULL;
}

static bool make_message_methods(struct remote_key *process)
{
    for (int i = 0; i < REMOTE_KEY_MESSAGE_TYPES; i++) {
        process->messages[i] = make_message_method(message_types[i]);
        if (process->messages[i] == NULL)
            return false;
    }
    return true;
}

static void free_message_method(EVP_PKEY_METHOD *method)
{
    if (method == NULL)
        return;
    EVP_PKEY_meth_remove(method);
    EVP_PKEY_meth_free(method);
}

static EVP_PKEY *make_message_key(struct remote_key *process, EVP_PKEY *public)
{
    EVP_PKEY *key = EVP_PKEY_dup(public);

    if (key != NULL && EVP_PKEY_set_ex_data(key, 0, process) == 1)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

/* ---- */

static EVP_PKEY *make_method_key(struct remote_key *process, EVP_PKEY *public, int type)
{
    EVP_PKEY *key = EVP_PKEY_new();
    struct remote *remote = calloc(1, sizeof *remote);
    bool good = key != NULL && remote != NULL && key_process_name(public, &remote->name);

    if (good) {
        remote->process = process;
        remote->limit = (size_t)EVP_PKEY_get_size(public);
        good = type == EVP_PKEY_RSA ? wrap_rsa(key, public, process->rsa, remote)
                                    : wrap_ec(key, public, process->ec, remote);
    }
    if (good)
        return key;
    free(remote);
    EVP_PKEY_free(key);
    return NULL;
}

struct evp_pkey_st *remote_key_make(struct remote_key *process, struct x509_st *certificate)
{
    EVP_PKEY *public = X509_get0_pubkey(certificate);
    int type = public != NULL ? EVP_PKEY_get_base_id(public) : EVP_PKEY_NONE;

    if (type == EVP_PKEY_RSA || type == EVP_PKEY_EC)
        return make_method_key(process, public, type);
    return key_process_signs_messages(type) ? make_message_key(process, public) : NULL;
}

bool remote_key_open(struct remote_key *process, const struct key_files *files)
{
    int asking, answering;

    *process = (struct remote_key){.socket = -1,
                                   .channel = -1,
                                   .until_channel = -1,
                                   .rsa = make_rsa_method(),
                                   .ec = make_ec_method()};
    if (process->rsa == NULL || process->ec == NULL || !question_open(&asking, &answering))
        return false;
    if (!helper_process_start("key_process", answering, key_process_supervise, files,
                              HELPER_PROCESS_ONLY)) {
        close(asking);
        close(answering);
        return false;
    }
    close(answering);
    process->socket = asking;
    return make_message_methods(process); /* after the signers, which sign by the usual ones */
}

void remote_key_stay(struct remote_key *process)
{
    process->until_channel = 0;
}

bool remote_key_load(const struct remote_key *process, const struct key_name *used,
                     struct key_report *report, struct key_file *certificate)
{
    struct signer_request request = {.operation = SIGNER_LOAD};
    int rest;
    bool good;

    if (used != NULL)
        request.name = *used;
    if (ask(process->socket, &request, report, sizeof *report, &rest) != sizeof *report)
        return false;
    certificate->error = report->certificate_error;
    certificate->length = report->length;
    good = receive(rest, certificate->data, sizeof certificate->data) == (ssize_t)report->length;
    close(rest);
    return good;
}

void remote_key_close(struct remote_key *process)
{
    if (process->socket >= 0)
        close(process->socket);
    process->socket = -1;
    if (process->channel >= 0)
        close_channel(process);
    for (int i = 0; i < REMOTE_KEY_MESSAGE_TYPES; i++)
        free_message_method(process->messages[i]);
    RSA_meth_free(process->rsa);
    if (process->ec != NULL)
        EC_KEY_METHOD_free(process->ec);
    process->rsa = NULL;
    process->ec = NULL;
}
