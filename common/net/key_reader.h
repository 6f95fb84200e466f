/* A process that stays outside of the sandbox, with the rights that the server began with, and can
 * do one thing: read two files again, when it is asked. */
#ifndef COMMON_NET_KEY_READER_H
#define COMMON_NET_KEY_READER_H

#include <stdbool.h>
#include <stddef.h>

#define KEEPER_FILES 2
/* A certificate with its chain, or a key, is smaller. */
#define KEEPER_FILE_LIMIT 65536

struct kept {
    int error; /* errno; 0: it was read */
    size_t length;
    char data[KEEPER_FILE_LIMIT];
};

struct key_reader {
    int socket; /* -1: there is none any more */
};

/* Reads the file into memory that is overwritten. */
void key_reader_look(const char *path, struct kept *file);

/* Starts the process. False, with errno set, if it cannot be made. It ends with the last process
 * that holds the keeper. */
bool key_reader_open(struct key_reader *key_reader, const char *const paths[KEEPER_FILES]);

/* Has it read the files. False if it does not answer: then it never will again. */
bool key_reader_ask(struct key_reader *key_reader, struct kept files[KEEPER_FILES]);

void key_reader_close(struct key_reader *key_reader);

#endif
