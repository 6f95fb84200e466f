/* A process outside the sandbox, with the rights that the server was started with. It does one
 * thing: on request, it reads the certificate and the key again. */
#ifndef COMMON_NET_KEY_READER_H
#define COMMON_NET_KEY_READER_H

#include "common/base/helper_process.h"

#include <stdbool.h>
#include <stddef.h>

#define KEY_READER_FILES 2
/* Certificates with their chains, and keys, are smaller. */
#define KEY_READER_FILE_LIMIT 65536

struct key_file {
    int error; /* errno of reading the file; or 0 */
    size_t length;
    char data[KEY_READER_FILE_LIMIT];
};

struct key_reader {
    int socket; /* -1: the process has ended */
};

/* Reads the file in this process. */
void key_reader_load(const char *path, struct key_file *file);

struct key_files {
    const char *paths[KEY_READER_FILES];
    struct helper_process_confinement confinement; /* of a process that reads them, or signs */
    int workers; /* that ask for a signer each, if other processes sign */
};

/* Starts the process; false, with errno set, if that fails. It ends when the last process that has
 * inherited the socket ends. */
bool key_reader_open(struct key_reader *key_reader, const struct key_files *files);

/* Gets the files from the process. False if it does not answer; it is not asked again. */
bool key_reader_reload(struct key_reader *key_reader, struct key_file files[KEY_READER_FILES]);

void key_reader_close(struct key_reader *key_reader);

#endif
