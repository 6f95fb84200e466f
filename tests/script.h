/* A transport whose peer is a script: fuzzers read from memory, in pieces, and write to memory. */
#ifndef TESTS_SCRIPT_H
#define TESTS_SCRIPT_H

#include "common/net/transport.h"

#include <string.h>

/* The peer: its bytes, cut into pieces of different lengths, and what it receives. */
struct script {
    const char *bytes;
    size_t size, at;
    size_t piece;    /* the longest piece; each one is of another length */
    size_t left;     /* of the piece that is being read */
    unsigned pieces; /* read so far */
    struct buffer received;
};

static struct script script;

static inline enum transfer script_read(struct transport *transport, char *data, size_t size,
                                        size_t *count)
{
    (void)transport;
    *count = 0;
    if (script.at == script.size)
        return TRANSFER_END;
    if (script.left == 0) {
        script.left = 1 + script.pieces++ * 7919 % script.piece;
        return TRANSFER_READ;
    }
    if (script.left > script.size - script.at)
        script.left = script.size - script.at;
    *count = size < script.left ? size : script.left;
    memcpy(data, script.bytes + script.at, *count);
    script.at += *count;
    script.left -= *count;
    return TRANSFER_DONE;
}

static inline enum transfer script_write(struct transport *transport, struct text data, bool more,
                                         size_t *count)
{
    (void)transport;
    (void)more;
    *count = data.length;
    buffer_add(&script.received, data);
    return TRANSFER_DONE;
}

static inline enum transfer script_send_file(struct transport *transport, int file, uint64_t offset,
                                             uint64_t length, size_t *count)
{
    (void)transport;
    (void)file;
    (void)offset;
    (void)length;
    *count = 0;
    return TRANSFER_FAILED;
}

static inline void script_nothing(struct transport *transport)
{
    (void)transport;
}

static inline uint64_t script_unacknowledged(struct transport *transport)
{
    (void)transport;
    return 0;
}

static const struct transport_kind scripted = {
    .open = transport_open_stream,
    .recall = transport_recall_stream,
    .read = script_read,
    .write = script_write,
    .send_file = script_send_file,
    .finish = script_nothing,
    .unacknowledged = script_unacknowledged,
    .abandon = script_nothing,
    .close = script_nothing,
};

/* Begins a script whose pieces are at most so long. */
static inline void script_start(const char *bytes, size_t size, size_t piece)
{
    script = (struct script){.bytes = bytes, .size = size, .piece = piece};
}

#endif
