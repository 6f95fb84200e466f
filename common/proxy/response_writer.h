/* Sends a response to the client piece by piece: a head, and a body in memory or in a file, as far
 * as it has arrived. */
#ifndef COMMON_PROXY_RESPONSE_WRITER_H
#define COMMON_PROXY_RESPONSE_WRITER_H

#include "common/proxy/block_checksums.h"
#include "common/service.h"

#define RESPONSE_WRITER_HEAD_LIMIT (40 * 1024)

struct response_writer {
    enum framing framing; /* of the body, as the client reads it */
    bool bodiless;        /* the response ends with its head */
    bool complete;        /* the whole body has arrived */
    bool broken;          /* no more of it will arrive */
    bool begun;           /* the client has got some bytes */
    bool ended;           /* the client has got all of them */
    bool open_end;        /* the end of the connection must not look like that of the body */
    struct text data;     /* of the body, in memory; the caller keeps it until it is sent */
    int file;             /* or in a file; -1: none */
    const struct cache_body *checked; /* that the file is checked by as it is sent; or NULL */
    uint64_t file_start;              /* where the body begins there */
    uint64_t file_end;                /* its length so far */
    uint64_t offset;                  /* of the next byte, from file_start on */
    uint64_t portion;                 /* bytes that are left of the current piece */
    bool in_chunk;
    bool closed;         /* the last chunk is written */
    size_t claim;        /* where the head says that the response is stored; 0: nowhere */
    size_t sent;         /* bytes of the lines */
    struct buffer lines; /* the head, or what frames a chunk */
    char space[RESPONSE_WRITER_HEAD_LIMIT];
};

/* Empties it. The caller then writes a head, from a status line to an empty line. */
void response_writer_start(struct response_writer *writer);
void response_writer_add_status(struct response_writer *writer, const struct service_call *call,
                                int status, struct text reason);
/* Adds the Connection field, and the empty line. */
void response_writer_end_head(struct response_writer *writer, const struct service_call *call);
/* Returns true if the connection with the client goes on after this response. */
bool response_writer_keeps_connection(const struct service_call *call);

/* The client gets another response instead: it has got nothing of this one. */
void response_writer_give_up(struct response_writer *writer, const struct service_call *call);
/* Returns true if bytes of the body have arrived that are not sent. */
bool response_writer_holds(const struct response_writer *writer);
/* Sends the bytes that have arrived. Returns TRANSFER_DONE when all of them are sent. */
enum transfer response_writer_send(struct response_writer *writer, struct service_call *call);

#endif
