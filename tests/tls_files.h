/* Makes a key, and a certificate signed by itself, for tests of TLS. */
#ifndef TESTS_TLS_FILES_H
#define TESTS_TLS_FILES_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdio.h>

static inline FILE *tls_files_create(const char *directory, const char *name, char *path,
                                     size_t size)
{
    snprintf(path, size, "%s/%s", directory, name);
    return fopen(path, "w");
}

/* Writes both into a directory, and their paths into rooms of that size. */
static inline bool tls_files_make(const char *directory, char *certificate_path, char *key_path,
                                  size_t size)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    FILE *files[] = {tls_files_create(directory, "certificate", certificate_path, size),
                     tls_files_create(directory, "key", key_path, size)};
    bool good = key != NULL && certificate != NULL && files[0] != NULL && files[1] != NULL;

    if (good) {
        X509_set_version(certificate, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
        X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
        X509_gmtime_adj(X509_getm_notAfter(certificate), 365 * 86400L);
        X509_set_pubkey(certificate, key);
        good = X509_sign(certificate, key, EVP_sha256()) > 0 &&
               PEM_write_X509(files[0], certificate) == 1 &&
               PEM_write_PrivateKey(files[1], key, NULL, NULL, 0, NULL, NULL) == 1;
    }
    for (int i = 0; i < 2; i++)
        if (files[i] != NULL)
            fclose(files[i]);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return good;
}

#endif
