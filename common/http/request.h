/* Parses the head of a request (RFC 9112) strictly: it refuses whatever two parsers could read in
 * two ways. A request consists of slices of the bytes that it was parsed from. */
#ifndef COMMON_HTTP_REQUEST_H
#define COMMON_HTTP_REQUEST_H

#include "common/base/text.h"

#define REQUEST_LINE_LIMIT  8192
#define REQUEST_HEAD_LIMIT  32768
#define REQUEST_FIELD_LIMIT 100

enum method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_OPTIONS,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_CONNECT,
    METHOD_TRACE,
    METHOD_PATCH,
    METHOD_UNKNOWN,
};

enum field_name {
    FIELD_HOST,
    FIELD_CONNECTION,
    FIELD_CONTENT_LENGTH,
    FIELD_TRANSFER_ENCODING,
    FIELD_EXPECT,
    FIELD_RANGE,
    FIELD_IF_RANGE,
    FIELD_IF_MATCH,
    FIELD_IF_NONE_MATCH,
    FIELD_IF_MODIFIED_SINCE,
    FIELD_IF_UNMODIFIED_SINCE,
    FIELD_REFERER,
    FIELD_USER_AGENT,
    FIELD_OTHER,
};

/* The scheme of an absolute target. */
enum scheme {
    SCHEME_UNSAID,
    SCHEME_HTTP,
    SCHEME_HTTPS,
};

enum framing {
    FRAMING_NONE,
    FRAMING_LENGTH,
    FRAMING_CHUNKED,
};

struct request {
    /* How far the bytes were scanned, while the head is not whole. */
    size_t scanned;
    size_t line_start;
    size_t lines;

    enum method method;
    unsigned minor;  /* HTTP/1.minor */
    bool keep_alive; /* the client allows further requests */
    bool expects_continue;
    enum framing framing;
    uint64_t content_length;
    struct text line; /* the request line, without its line end */
    enum scheme scheme;
    struct text path;  /* begins with '/'; empty for "*" and CONNECT */
    struct text query; /* with its question mark, or empty */
    struct text host;  /* from the target if it names one, else from Host */

    /* Why the request is refused. */
    int status;
    const char *problem;

    size_t field_count;
    uint32_t present;   /* a bit for each field name: absent fields are not searched for */
    struct text fields; /* the lines that hold them */
};

enum request_progress {
    REQUEST_PARTIAL, /* more bytes are needed */
    REQUEST_WHOLE,   /* the head is whole and good */
    REQUEST_REFUSED, /* `status` and `problem` say why; nothing after it can be parsed */
};

/* Returns true for a character of methods and field names (RFC 9110, section 5.6.2). */
bool request_is_token(char character);

/* Prepares for the next request. */
void request_start(struct request *request);

/* Parses all bytes received of a request so far, from its first byte, which may have moved since
 * the last call. Once the head is whole, `*taken` is its length. */
enum request_progress request_read(struct request *request, struct text bytes, size_t *taken);

/* Reads the field at `*from`, and moves `*from` behind it; false if there is no further field. */
bool request_next(const struct request *request, size_t *from, struct text *name,
                  struct text *value);
/* Reads the next field of that name, in the same way. */
bool request_field(const struct request *request, enum field_name name, size_t *from,
                   struct text *value);
/* Reads the value of the only field of that name; false if there is none, or several. */
bool request_single(const struct request *request, enum field_name name, struct text *value);

#endif
