/* The processes that hold the TLS key: they sign for the workers, and read the files again. */

/* RSA_sign() and its like are deprecated. remote_key.c replaces these functions by methods of RSA
 * and EC keys, whose requests arrive here. */
#define OPENSSL_API_COMPAT 10101

#include "common/net/key_process.h"

#include "common/base/fd_message.h"
#include "common/base/lock.h"
#include "common/net/key_process_escape_injection.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The last keys that were read: sessions that began before a reload need the one before. */
#define VAULT_KEYS 4

/* The most workers that have a signer each. Others share the remaining signers. */
#define CHANNELS_LIMIT 64

struct vault_key {
    uint64_t loaded; /* the number of the load; 0: empty */
    struct key_name name;
    struct key_file file;
};

/* Lies in memory that the supervisor and its signers share, and nobody else. */
struct vault {
    struct lock lock;
    uint64_t loads;
    struct vault_key keys[VAULT_KEYS];
    _Atomic pid_t staying[CHANNELS_LIMIT]; /* signers, each at a channel; or 0 */
};

/* The keys that a signer has parsed, by their place in the vault. */
struct signer {
    int socket;
    pid_t self;
    const struct key_files *files;
    struct vault *vault;
    EVP_PKEY *keys[VAULT_KEYS];
    uint64_t loaded[VAULT_KEYS];
};

bool key_process_name(struct evp_pkey_st *key, struct key_name *name)
{
    unsigned char *text = NULL;
    int length = i2d_PUBKEY(key, &text);
    bool good =
        length > 0 && EVP_Digest(text, (size_t)length, name->bytes, NULL, EVP_sha256(), NULL) == 1;

    OPENSSL_free(text);
    return good;
}

bool key_process_signs_messages(int type)
{
    return type == EVP_PKEY_ED25519 || type == EVP_PKEY_ED448;
}

/* ---- reading the files ---- */

static int refuse_passphrase(char *buffer, int size, int writing, void *locked)
{
    (void)buffer;
    (void)size;
    (void)writing;
    *(bool *)locked = true;
    return -1;
}

static EVP_PKEY *parse(const struct key_file *file, bool *locked)
{
    BIO *text = BIO_new_mem_buf(file->data, (int)file->length);
    EVP_PKEY *key =
        text != NULL ? PEM_read_bio_PrivateKey(text, NULL, refuse_passphrase, locked) : NULL;

    BIO_free(text);
    return key;
}

static bool is_named(const struct vault_key *key, const struct key_name *name)
{
    return key->loaded != 0 && memcmp(&key->name, name, sizeof *name) == 0;
}

/* Returns the place for a key: its own, or that of the oldest key that is not in use. */
static struct vault_key *place_for(struct vault *vault, const struct key_name *name,
                                   const struct key_name *used)
{
    struct vault_key *place = NULL;

    for (int i = 0; i < VAULT_KEYS; i++) {
        struct vault_key *key = &vault->keys[i];
        if (is_named(key, name))
            return key;
        if (!is_named(key, used) && (place == NULL || key->loaded < place->loaded))
            place = key;
    }
    return place;
}

static void keep(const struct signer *signer, const struct key_name *used,
                 const struct key_name *name, const struct key_file *file)
{
    struct vault *vault = signer->vault;
    struct vault_key *key;

    lock_take(&vault->lock, signer->self);
    key = place_for(vault, name, used);
    key->name = *name;
    key->file = *file;
    key->loaded = ++vault->loads;
    lock_give(&vault->lock, signer->self);
}

static void judge_key(const struct key_file *file, struct key_report *report)
{
    bool locked = false;
    EVP_PKEY *key;
    const char *reason;

    ERR_clear_error();
    key = parse(file, &locked);
    report->verdict = locked ? KEY_LOCKED : KEY_BAD;
    if (key != NULL && key_process_name(key, &report->name))
        report->verdict = KEY_GOOD;
    reason = key_escape_check((struct text){file->data, file->length});
    if (reason == NULL)
        reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(report->reason, sizeof report->reason, "%s",
             reason != NULL ? reason : "there is no memory");
    EVP_PKEY_free(key);
}

/* A worker that cannot take a response waits until the socket is closed. */
static void respond(int client, const void *data, size_t size)
{
    send(client, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void load(const struct signer *signer, const struct signer_request *request, int client)
{
    struct key_file *files = calloc(KEY_READER_FILES, sizeof *files);
    struct key_report report = {0};

    if (files == NULL)
        return;
    for (int i = 0; i < KEY_READER_FILES; i++)
        key_reader_load(signer->files->paths[i], &files[i]);
    report.certificate_error = files[0].error;
    report.key_error = files[1].error;
    report.length = files[0].length;
    judge_key(&files[1], &report);
    if (report.verdict == KEY_GOOD && report.key_error == 0)
        keep(signer, &request->name, &report.name, &files[1]);
    respond(client, &report, sizeof report);
    respond(client, files[0].data, files[0].length);
    explicit_bzero(files, KEY_READER_FILES * sizeof *files);
    free(files);
}

/* ---- signing ---- */

/* Returns the key with that name; NULL if there is none. */
static EVP_PKEY *find(struct signer *signer, const struct key_name *name)
{
    struct vault *vault = signer->vault;
    EVP_PKEY *key = NULL;
    bool locked;

    lock_take(&vault->lock, signer->self);
    for (int i = 0; i < VAULT_KEYS && key == NULL; i++) {
        const struct vault_key *found = &vault->keys[i];
        if (!is_named(found, name))
            continue;
        if (signer->loaded[i] != found->loaded) {
            EVP_PKEY_free(signer->keys[i]);
            signer->keys[i] = parse(&found->file, &locked);
            signer->loaded[i] = found->loaded;
        }
        key = signer->keys[i];
    }
    lock_give(&vault->lock, signer->self);
    return key;
}

/* Returns true if the block is padded by PSS with this digest, and a salt as long as the digest.
 * Without this check a worker could have the key applied to any block, and so decrypt messages of
 * others. */
static bool is_pss(const unsigned char *block, size_t size, int bits, const EVP_MD *digest)
{
    size_t hash = (size_t)EVP_MD_get_size(digest), masked = size - hash - 1;
    unsigned char mask[SIGNER_DATA_LIMIT];
    size_t i = 0;

    if (size < 2 * hash + 2 || block[size - 1] != 0xbc ||
        PKCS1_MGF1(mask, (long)masked, block + masked, (long)hash, digest) != 0)
        return false;
    for (size_t k = 0; k < masked; k++)
        mask[k] ^= block[k];
    mask[0] &= (unsigned char)(0xff >> (8 * size - (size_t)bits + 1));
    while (i < masked && mask[i] == 0)
        i++;
    return i < masked && mask[i] == 1 && masked - i - 1 == hash;
}

static unsigned sign_block(RSA *rsa, const struct signer_request *request, unsigned char *signature)
{
    int bits = RSA_bits(rsa), length;

    if (request->length != (unsigned)RSA_size(rsa) ||
        (!is_pss(request->data, request->length, bits, EVP_sha256()) &&
         !is_pss(request->data, request->length, bits, EVP_sha384()) &&
         !is_pss(request->data, request->length, bits, EVP_sha512())))
        return 0;
    length =
        RSA_private_encrypt((int)request->length, request->data, signature, rsa, RSA_NO_PADDING);
    return length > 0 ? (unsigned)length : 0;
}

static unsigned sign_message(EVP_PKEY *key, const struct signer_request *request,
                             unsigned char *signature)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t length = SIGNER_DATA_LIMIT;
    bool good = context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestSign(context, signature, &length, request->data, request->length) == 1;

    EVP_MD_CTX_free(context);
    return good ? (unsigned)length : 0;
}

static unsigned sign_by_rsa(RSA *rsa, const struct signer_request *request,
                            unsigned char *signature)
{
    unsigned length = 0;

    if (rsa == NULL)
        return 0;
    if (request->operation == SIGNER_RSA_PSS)
        return sign_block(rsa, request, signature);
    if (RSA_sign(request->type, request->data, request->length, signature, &length, rsa) != 1)
        return 0;
    return length;
}

static unsigned sign_by_ec(EC_KEY *ec, const struct signer_request *request,
                           unsigned char *signature)
{
    unsigned length = 0;

    if (ec == NULL ||
        ECDSA_sign(0, request->data, (int)request->length, signature, &length, ec) != 1)
        return 0;
    return length;
}

/* Returns the length of the signature; 0 on failure. A key signs only what is meant for its type.
 */
static unsigned sign(EVP_PKEY *key, const struct signer_request *request, unsigned char *signature)
{
    enum signer_operation operation = request->operation;
    int type = EVP_PKEY_get_base_id(key);

    if (type == EVP_PKEY_RSA && (operation == SIGNER_RSA || operation == SIGNER_RSA_PSS))
        return sign_by_rsa((RSA *)(uintptr_t)EVP_PKEY_get0_RSA(key), request, signature);
    if (type == EVP_PKEY_EC && operation == SIGNER_EC)
        return sign_by_ec((EC_KEY *)(uintptr_t)EVP_PKEY_get0_EC_KEY(key), request, signature);
    if (key_process_signs_messages(type) && operation == SIGNER_MESSAGE)
        return sign_message(key, request, signature);
    return 0;
}

static void answer_signature(struct signer *signer, const struct signer_request *request,
                             int client)
{
    unsigned char signature[SIGNER_DATA_LIMIT];
    EVP_PKEY *key = find(signer, &request->name);
    unsigned length = 0;

    ERR_clear_error();
    if (key != NULL)
        length = sign(key, request, signature);
    respond(client, signature, length);
}

static bool is_over(int socket)
{
    struct pollfd peer = {.fd = socket, .events = POLLRDHUP};

    return poll(&peer, 1, 0) == 1 && (peer.revents & (POLLHUP | POLLRDHUP));
}

static bool is_whole(const struct signer_request *request, size_t size)
{
    return size >= signer_request_size(0) && request->length <= sizeof request->data &&
           size == signer_request_size(request->length);
}

/* ---- channels ---- */

static int channels(const struct key_files *files)
{
    return files->workers < CHANNELS_LIMIT ? files->workers : CHANNELS_LIMIT;
}

static bool replace_staying(const struct signer *signer, pid_t from, pid_t to)
{
    for (int i = 0; i < channels(signer->files); i++) {
        pid_t now = from;
        if (atomic_compare_exchange_strong(&signer->vault->staying[i], &now, to))
            return true;
    }
    return false;
}

/* A worker must not give a channel to its client: the other end is a socket of this machine. */
static bool is_local(int channel)
{
    struct ucred maker = {0};
    socklen_t length = sizeof maker;

    return getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &maker, &length) == 0 && maker.pid > 0;
}

/* Waits for a request at the channel. Returns false if the server has ended: it may have left the
 * channel to somebody. */
static bool await_request(const struct signer *signer, int channel)
{
    struct pollfd sockets[] = {{.fd = channel, .events = POLLIN}, {.fd = signer->socket}};

    return poll(sockets, 2, -1) > 0 && (sockets[1].revents & POLLHUP) == 0;
}

/* There are places for as many as there are workers: so one signer for each processor does not
 * stay, whatever workers ask for. */
static void stay(struct signer *signer, int channel)
{
    struct signer_request request;
    ssize_t size;

    if (!is_local(channel) || !replace_staying(signer, 0, signer->self))
        return;
    while (await_request(signer, channel) &&
           (size = recv(channel, &request, sizeof request, MSG_DONTWAIT)) > 0)
        if (is_whole(&request, (size_t)size))
            answer_signature(signer, &request, channel);
    replace_staying(signer, signer->self, 0);
}

/* ---- a signer ---- */

static void answer(struct signer *signer, const struct signer_request *request, int client)
{
    switch (request->operation) {
    case SIGNER_LOAD:
        load(signer, request, client);
        break;
    case SIGNER_STAY:
        stay(signer, client);
        break;
    default:
        answer_signature(signer, request, client);
    }
}

/* Ends when nobody is left who could ask. A message that is no request is ignored. */
static void serve(struct signer *signer)
{
    struct signer_request request;
    struct fd_message message;
    size_t size;

    do {
        size = 0;
        message.count = 0;
        fd_message_receive(signer->socket, &request, sizeof request, &size, &message);
        if (is_whole(&request, size) && message.count == 1)
            answer(signer, &request, message.descriptors[0]);
        fd_message_close_at_once(&message);
    } while (size > 0 || !is_over(signer->socket));
}

/* ---- the supervisor ---- */

static struct vault *open_vault(void)
{
    struct vault *vault =
        mmap(NULL, sizeof *vault, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (vault == MAP_FAILED)
        return NULL;
    madvise(vault, sizeof *vault, MADV_DONTDUMP);
    return lock_open(&vault->lock) ? vault : NULL;
}

static void sign_for_workers(const void *argument)
{
    struct signer own = *(const struct signer *)argument;

    own.self = getpid();
    helper_process_confine(&own.files->confinement, HELPER_PROCESS_WORKER);
    serve(&own);
    for (int i = 0; i < VAULT_KEYS; i++)
        EVP_PKEY_free(own.keys[i]);
}

static void forget_signer(const void *argument, pid_t process)
{
    replace_staying(argument, process, 0);
}

/* No other process of the same user may read the memory of the supervisor and its signers. */
void key_process_supervise(int socket, const void *files)
{
    struct signer signer = {.socket = socket, .files = files, .vault = open_vault()};

    prctl(PR_SET_DUMPABLE, 0);
    if (signer.vault == NULL)
        return;
    helper_process_confine(&signer.files->confinement, HELPER_PROCESS_SUPERVISOR);
    helper_process_supervise(socket,
                             &(struct helper_process_crew){
                                 .count = (int)sysconf(_SC_NPROCESSORS_ONLN) + channels(files),
                                 .work = sign_for_workers,
                                 .died = forget_signer,
                                 .argument = &signer,
                             });
}
