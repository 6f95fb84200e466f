/* A transport whose peer is a script: fuzzers read from memory, in pieces, and write to memory. */
#ifndef TESTS_SCRIPT_H
#define TESTS_SCRIPT_H

#include "common/net/transport.h"

#include <string.h>

/* The peer: its bytes, cut into pieces of different lengths, and what it receives. */
struct script {
    const char *bytes;
    size_t size, at;
    size_t piece;  /* the longest piece */
    size_t left;   /* of the piece that is being read */
    uint64_t cuts; /* state of the pseudo-random lengths of pieces; other bytes, other cuts */
    struct buffer received;
};

static struct script script;

/* Returns the length of the next piece. */
static inline size_t script_cut(void)
{
    script.cuts = script.cuts * 6364136223846793005U + 1442695040888963407U;
    return 1 + (size_t)(script.cuts >> 33) % script.piece;
}

static inline enum transfer script_read(struct transport *transport, char *data, size_t size,
                                        size_t *count)
{
    (void)transport;
    *count = 0;
    if (script.at == script.size)
        return TRANSFER_END;
    if (script.left == 0) {
        script.left = script_cut();
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

static inline enum transfer script_write(struct transport *transport, struct text data,
                                         uint64_t more, size_t *count)
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
    script = (struct script){.bytes = bytes, .size = size, .piece = piece, .cuts = piece};
    for (size_t i = 0; i < size; i++)
        script.cuts = (script.cuts ^ (uint8_t)bytes[i]) * 1099511628211U;
}

#endif
