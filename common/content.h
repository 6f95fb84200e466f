/* The body of a request, read off the connection and discarded. */
#ifndef COMMON_CONTENT_H
#define COMMON_CONTENT_H

#include "common/request.h"

#define CONTENT_LIMIT (1024 * 1024)

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
    size_t overhead;    /* bytes of chunk extensions and trailers */
    int status;
    const char *problem;
};

enum content_progress {
    CONTENT_PARTIAL,
    CONTENT_WHOLE,
    CONTENT_REFUSED, /* `status` and `problem` say why */
};

void content_start(struct content *content, const struct request *request);
/* Takes what belongs to the body off the head of `bytes`. */
enum content_progress content_read(struct content *content, struct text *bytes);

#endif
