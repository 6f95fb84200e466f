/* Reads the body of a request, or of an origin's response, as its bytes arrive. */
#ifndef COMMON_HTTP_BODY_READER_H
#define COMMON_HTTP_BODY_READER_H

#include "common/http/request.h"

/* The most bytes of a body that is thrown away. */
#define BODY_READER_LIMIT (1024 * 1024)
/* The most bytes of any body. */
#define BODY_READER_LIMIT_ANY (UINT64_C(1) << 56)

enum body_reader_state {
    BODY_READER_DATA,       /* bytes of the body, or of a chunk */
    BODY_READER_SIZE_FIRST, /* the first digit of a chunk's size */
    BODY_READER_SIZE,
    BODY_READER_EXTENSION,
    BODY_READER_QUOTED, /* a quoted string in a chunk extension */
    BODY_READER_ESCAPED,
    BODY_READER_SIZE_END,
    BODY_READER_DATA_CR,
    BODY_READER_DATA_LF,
    BODY_READER_TRAILER_START, /* the first byte of a trailer line */
    BODY_READER_TRAILER_NAME,
    BODY_READER_TRAILER,
    BODY_READER_TRAILER_LF,
    BODY_READER_END_LF,
};

struct body_reader {
    enum body_reader_state state;
    bool chunked;
    uint64_t remaining; /* bytes left of the body or chunk */
    uint64_t total;     /* bytes of all chunks so far */
    uint64_t limit;     /* the most bytes of the whole body */
    uint64_t overhead;  /* bytes that are not data */
    uint64_t gap;       /* such bytes since the last byte of data */
    unsigned allowance; /* such bytes for each byte of data */
    int status;
    const char *problem;
};

enum body_reader_progress {
    BODY_READER_PARTIAL,
    BODY_READER_WHOLE,
    BODY_READER_REFUSED, /* `status` and `problem` say why */
};

/* Begins the body of the request, which will be thrown away. */
void body_reader_start(struct body_reader *body_reader, const struct request *request);
/* Begins the body of any message. */
void body_reader_begin(struct body_reader *body_reader, enum framing framing, uint64_t length,
                       uint64_t limit);
/* Takes all that belongs to the body off the head of `bytes`. */
enum body_reader_progress body_reader_read(struct body_reader *body_reader, struct text *bytes);
/* Takes no more than the next piece of data, and returns it in `*data`: empty if there is none. */
enum body_reader_progress body_reader_take(struct body_reader *body_reader, struct text *bytes,
                                           struct text *data);

#endif
