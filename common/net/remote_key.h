/* A process outside the sandbox that holds the TLS key and signs with it. The server and its
 * workers have the certificate alone. */
#ifndef COMMON_NET_REMOTE_KEY_H
#define COMMON_NET_REMOTE_KEY_H

#include "common/net/key_process.h"

struct x509_st;
struct rsa_meth_st;
struct ec_key_method_st;
struct evp_pkey_method_st;

/* Types of keys that sign whole messages. */
#define REMOTE_KEY_MESSAGE_TYPES 2

struct remote_key {
    int socket;        /* -1: there is none */
    int channel;       /* to a signer of this process; -1: there is none */
    int until_channel; /* so many signatures later it asks for one; less than 0: never */
    struct rsa_meth_st *rsa;
    struct ec_key_method_st *ec;
    struct evp_pkey_method_st *messages[REMOTE_KEY_MESSAGE_TYPES];
};

/* Starts the process, and below it a signer for each processor, and one for each worker that
 * `files` tells of, up to 64; a signer that dies is replaced. They end when all processes that
 * inherit the socket have ended. False, with errno set, on failure. */
bool remote_key_open(struct remote_key *process, const struct key_files *files);

/* To be called by a worker that has one thread and asks often: it gets a signer of its own, where
 * one is free, and saves the making of sockets for each signature. */
void remote_key_stay(struct remote_key *process);

/* Has both files read again. The process keeps the key `used` as well, which may be NULL. False if
 * it does not answer. */
bool remote_key_load(const struct remote_key *process, const struct key_name *used,
                     struct key_report *report, struct key_file *certificate);

/* Returns a key for the certificate that signs through the process, which must remain where it is.
 * NULL if the key is neither RSA nor EC nor Ed25519 nor Ed448, or if memory is short. */
struct evp_pkey_st *remote_key_make(struct remote_key *process, struct x509_st *certificate);

void remote_key_close(struct remote_key *process);

#endif
