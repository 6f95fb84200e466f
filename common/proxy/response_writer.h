/* How a proxy's reply goes to the client: a head, and a body that is in memory, or in a file, as
 * far as it has come. */
#ifndef COMMON_PROXY_RESPONSE_WRITER_H
#define COMMON_PROXY_RESPONSE_WRITER_H

#include "common/service.h"

#define RESPONSE_WRITER_HEAD_LIMIT (40 * 1024)

struct response_writer {
    enum framing framing; /* of the body, as the client reads it */
    bool bodiless;        /* the reply ends with its head */
    bool complete;        /* all of the body has come that will come */
    bool begun;           /* something has gone to the client */
    bool ended;           /* all is gone */
    struct text data;     /* of the body, in memory; it must stay until it is gone */
    int file;             /* or in a file; -1: there is none */
    uint64_t file_start;  /* where the body begins there */
    uint64_t file_end;    /* where what has come of it ends */
    uint64_t offset;      /* of the next byte in the file */
    uint64_t portion;     /* bytes that the last chunk size spoke of */
    bool in_chunk;
    bool closed;         /* the last chunk is written */
    size_t sent;         /* of the lines */
    struct buffer lines; /* the head, or what frames a chunk */
    char space[RESPONSE_WRITER_HEAD_LIMIT];
};

/* Empties it; the caller writes the head into its lines. */
void response_writer_start(struct response_writer *writer);

/* Sends to the client what it has: done if all of it went, and otherwise what to wait for. */
enum transfer response_writer_send(struct response_writer *writer, struct service_call *call);

#endif
