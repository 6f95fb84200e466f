/* A process that reads the certificate and the key again. */
#include "common/net/key_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* The server waits no longer than this for the files. */
#define PATIENCE_SECONDS 2

void key_reader_load(const char *path, struct key_file *file)
{
    /* O_NONBLOCK: opening a named pipe would wait for a writer. Reading it does not. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t count = -1;

    file->error = 0;
    file->length = 0;
    if (descriptor >= 0)
        fcntl(descriptor, F_SETFL, 0);
    while (descriptor >= 0 && file->length < sizeof file->data) {
        count = read(descriptor, file->data + file->length, sizeof file->data - file->length);
        if (count <= 0)
            break;
        file->length += (size_t)count;
    }
    if (count < 0)
        file->error = errno;
    else if (file->length == sizeof file->data)
        file->error = EFBIG;
    if (descriptor >= 0)
        close(descriptor);
}

/* ---- the process ---- */

static bool send_all(int socket, const void *data, size_t size)
{
    const char *rest = data;

    while (size > 0) {
        ssize_t count = send(socket, rest, size, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        rest += count;
        size -= (size_t)count;
    }
    return true;
}

static bool send_key_file(int socket, const char *path, struct key_file *file)
{
    bool sent;

    key_reader_load(path, file);
    sent = send_all(socket, file, offsetof(struct key_file, data) + file->length);
    explicit_bzero(file, sizeof *file);
    return sent;
}

static void serve_files(int socket, const void *argument)
{
    const struct key_files *files = argument;
    struct key_file *file = calloc(1, sizeof *file);
    bool good = file != NULL;
    char question;

    helper_process_confine(&files->confinement, HELPER_PROCESS_WORKER);
    while (good && recv(socket, &question, 1, 0) == 1)
        for (int i = 0; i < KEY_READER_FILES && good; i++)
            good = send_key_file(socket, files->paths[i], file);
    free(file);
}

/* ---- the server ---- */

bool key_reader_open(struct key_reader *key_reader, const struct key_files *files)
{
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int sockets[2];

    key_reader->socket = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        return false;
    if (setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        !helper_process_start("key_reader", sockets[1], serve_files, files, HELPER_PROCESS_ONLY)) {
        close(sockets[0]);
        close(sockets[1]);
        return false;
    }
    close(sockets[1]);
    key_reader->socket = sockets[0];
    return true;
}

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

static bool receive_file(int socket, struct key_file *file)
{
    return receive_all(socket, file, offsetof(struct key_file, data)) &&
           file->length <= sizeof file->data && receive_all(socket, file->data, file->length);
}

bool key_reader_reload(struct key_reader *key_reader, struct key_file files[KEY_READER_FILES])
{
    bool good = key_reader->socket >= 0 && send(key_reader->socket, "?", 1, MSG_NOSIGNAL) == 1;

    for (int i = 0; i < KEY_READER_FILES && good; i++)
        good = receive_file(key_reader->socket, &files[i]);
    if (good || key_reader->socket < 0)
        return good;
    key_reader_close(key_reader); /* a late answer must not be taken for the next one */
    return false;
}

void key_reader_close(struct key_reader *key_reader)
{
    if (key_reader->socket >= 0)
        close(key_reader->socket);
    key_reader->socket = -1;
}
