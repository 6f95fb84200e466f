/* The head of an origin's reply (RFC 9112), read by a proxy: what two readers could read in two
 * ways is refused, and the rest put into one form. */
#ifndef COMMON_HTTP_RESPONSE_PARSER_H
#define COMMON_HTTP_RESPONSE_PARSER_H

#include "common/http/request.h"

#define RESPONSE_HEAD_LIMIT   32768
#define RESPONSE_FIELD_LIMIT  200
#define RESPONSE_REASON_LIMIT 256

struct parsed_response {
    size_t scanned;    /* bytes that hold no end of the head */
    size_t line_start; /* of the line that `scanned` is in */

    int status;
    unsigned minor; /* HTTP/1.minor */
    struct text reason;
    struct text fields; /* as fields.h says */
    enum framing framing;
    bool until_close; /* without framing: the body ends with the connection */
    bool has_length;
    uint64_t content_length;

    const char *problem; /* why it is refused */
};

enum response_parser_progress {
    RESPONSE_PARSER_PARTIAL,
    RESPONSE_PARSER_WHOLE,
    RESPONSE_PARSER_REFUSED,
};

/* Makes ready for the next reply. */
void response_parser_start(struct parsed_response *response);

/* Looks at all bytes received of a reply to the method so far. Once the head is whole, `*taken` is
 * its length, and `fields` holds its fields, with the reason before them. */
enum response_parser_progress response_parser_read(struct parsed_response *response,
                                                   enum method method, struct text bytes,
                                                   struct buffer *fields, size_t *taken);

#endif
