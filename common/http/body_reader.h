/* A body, read off a connection: of a request, or of an origin's reply. */
#ifndef COMMON_HTTP_BODY_READER_H
#define COMMON_HTTP_BODY_READER_H

#include "common/http/request.h"

/* Of a body that is thrown away. */
#define CONTENT_LIMIT (1024 * 1024)
/* Of any body. */
#define CONTENT_LIMIT_ANY (UINT64_C(1) << 56)

enum content_state {
    CONTENT_DATA,       /* bytes of a body by Content-Length, or of a chunk */
    CONTENT_SIZE_FIRST, /* the first digit of a chunk's size */
    CONTENT_SIZE,
    CONTENT_EXTENSION,
    CONTENT_QUOTED, /* a quoted string in a chunk extension */
    CONTENT_ESCAPED,
    CONTENT_SIZE_END,
    CONTENT_DATA_CR,
    CONTENT_DATA_LF,
    CONTENT_TRAILER_START, /* of a trailer line */
    CONTENT_TRAILER_NAME,
    CONTENT_TRAILER,
    CONTENT_TRAILER_LF,
    CONTENT_END_LF,
};

struct content {
    enum content_state state;
    bool chunked;
    uint64_t remaining; /* of the body or chunk */
    uint64_t total;     /* of all chunks */
    uint64_t limit;     /* of the whole body */
    uint64_t overhead;  /* bytes that are not data */
    uint64_t gap;       /* of these, since the last byte of data */
    unsigned allowance; /* such bytes for each of data */
    int status;
    const char *problem;
};

enum content_progress {
    CONTENT_PARTIAL,
    CONTENT_WHOLE,
    CONTENT_REFUSED, /* `status` and `problem` say why */
};

void content_start(struct content *content, const struct request *request);
/* The same for a body that need not be of a request. */
void content_begin(struct content *content, enum framing framing, uint64_t length, uint64_t limit);
/* Takes what belongs to the body off the head of `bytes`. */
enum content_progress content_read(struct content *content, struct text *bytes);
/* The same, but goes no further than to the end of the next piece of data, which `*data` is then:
 * nothing once all bytes are taken. */
enum content_progress content_take(struct content *content, struct text *bytes, struct text *data);

#endif
