/* The processes that hold the TLS key, and the requests to them. */
#ifndef COMMON_NET_KEY_PROCESS_H
#define COMMON_NET_KEY_PROCESS_H

#include "common/net/key_reader.h"

struct evp_pkey_st;

/* A key is named by a checksum of its public half. */
struct key_name {
    unsigned char bytes[32];
};

/* The most bytes of a signature, and of the data to sign: RSA keys have at most 16384 bits. */
#define SIGNER_DATA_LIMIT 2048

/* SIGNER_RSA and SIGNER_EC sign a digest, SIGNER_RSA_PSS a block that is padded already, and
 * SIGNER_MESSAGE (Ed25519 and Ed448) a whole message. SIGNER_LOAD reads the files again; `name` is
 * a key to keep. SIGNER_STAY asks for a signer that stays at a socket: a channel. */
enum signer_operation {
    SIGNER_LOAD,
    SIGNER_STAY,
    SIGNER_RSA,
    SIGNER_RSA_PSS,
    SIGNER_EC,
    SIGNER_MESSAGE
};

/* A request is a message. If it is for a signature, it may come through a channel, which takes the
 * response, too; otherwise it carries a socket for the response, or for the channel. SIGNER_LOAD is
 * answered by two messages, the report and the file of the certificate; SIGNER_STAY, by none; the
 * others, by one with the signature, which is empty on failure. A signer that cannot stay closes
 * the channel. */
struct signer_request {
    enum signer_operation operation;
    int type; /* of the digest, as OpenSSL numbers it */
    struct key_name name;
    unsigned length;
    unsigned char data[SIGNER_DATA_LIMIT]; /* only so many are sent */
};

/* Returns the size of a request with so much data. */
static inline size_t signer_request_size(unsigned length)
{
    return offsetof(struct signer_request, data) + length;
}

enum key_verdict { KEY_GOOD, KEY_LOCKED, KEY_BAD };

struct key_report {
    int certificate_error, key_error; /* errno of reading the files; or 0 */
    enum key_verdict verdict;
    char reason[160];     /* of a bad key */
    struct key_name name; /* of a good one */
    size_t length;        /* of the certificate's file */
};

/* The work of the process, with a struct key_files: makes signers, and replaces those that
 * die. */
void key_process_supervise(int socket, const void *files);

/* Returns true if keys of this type, as OpenSSL numbers it, sign whole messages. */
bool key_process_signs_messages(int type);

/* Computes the name of a key; false if that fails. */
bool key_process_name(struct evp_pkey_st *key, struct key_name *name);

#endif
