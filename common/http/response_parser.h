/* Parses the head of an origin's response (RFC 9112) for a proxy: it refuses whatever two parsers
 * could read in two ways, and normalises the rest. */
#ifndef COMMON_HTTP_RESPONSE_PARSER_H
#define COMMON_HTTP_RESPONSE_PARSER_H

#include "common/http/request.h"

#define RESPONSE_HEAD_LIMIT   32768
#define RESPONSE_FIELD_LIMIT  200
#define RESPONSE_REASON_LIMIT 256

struct parsed_response {
    size_t scanned;    /* bytes that do not contain the end of the head */
    size_t line_start; /* where the line that `scanned` is in begins */

    int status;
    unsigned minor; /* HTTP/1.minor */
    struct text reason;
    struct text fields; /* in the form of fields.h */
    enum framing framing;
    bool until_close; /* the body ends with the connection */
    bool has_length;
    uint64_t content_length;

    const char *problem; /* why the response is refused */
};

enum response_parser_progress {
    RESPONSE_PARSER_PARTIAL,
    RESPONSE_PARSER_WHOLE,
    RESPONSE_PARSER_REFUSED,
};

/* Prepares for the next response. */
void response_parser_start(struct parsed_response *response);

/* Parses all bytes received of a response to the method so far. Once the head is whole, `*taken` is
 * its length, and `fields` holds the reason and the fields. */
enum response_parser_progress response_parser_read(struct parsed_response *response,
                                                   enum method method, struct text bytes,
                                                   struct buffer *fields, size_t *taken);

#endif
