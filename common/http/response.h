/* A response: a service describes it, and these functions write its head. */
#ifndef COMMON_HTTP_RESPONSE_H
#define COMMON_HTTP_RESPONSE_H

#include "common/base/clock.h"
#include "common/http/conditional.h"
#include "common/http/date.h"
#include "common/http/range.h"
#include "common/http/request.h"

#define RESPONSE_ETAG_SIZE 64

enum body_kind {
    BODY_NONE,
    BODY_MEMORY,
    BODY_FILE,
};

struct body {
    enum body_kind kind;
    uint64_t length;
    const char *memory;
    void (*release)(void *); /* called with `owner` when the response ends; or NULL */
    void *owner;
    int file;       /* closed when the response ends; or -1 */
    uint64_t start; /* offset of the body in the file */
    /* Returns how many of the `wanted` bytes of the file's body from `offset` on may be sent; 0:
     * they are damaged. NULL: all may be. */
    uint64_t (*check)(const void *owner, uint64_t offset, uint64_t wanted);
};

/* The meaning of Cache-Control. */
enum caching {
    CACHING_UNSAID,
    CACHING_VALIDATED, /* no-cache: each use needs validation */
    CACHING_FOR,       /* max-age */
};

struct response {
    int status;
    struct text reason; /* empty: the usual one */
    char *fields;       /* lines that replace those of the server, from malloc; or NULL */
    size_t fields_length;
    struct text type; /* media type */
    struct text allow;
    const struct request *moved_to; /* redirects this target to the one with a slash; or NULL */
    bool has_validators;
    bool in_parts; /* an error that announces Accept-Ranges: a range would be served */
    bool bare;     /* as short as possible: the status, without a body */
    int64_t modified;
    enum caching caching;
    int max_age; /* seconds */
    struct buffer etag;
    char etag_space[RESPONSE_ETAG_SIZE];
    struct body body;
    uint64_t whole;    /* bytes of the representation, if ranges were taken from it */
    int range_count;   /* 0: the whole body */
    uint64_t boundary; /* of a multipart response */
    struct range ranges[RANGE_LIMIT];
};

/* Empties it for a new response. */
void response_start(struct response *response);
/* Releases all that it owns. */
void response_end(struct response *response);

/* Returns a body of memory from malloc, which the response frees. */
struct body response_page(const struct buffer *page);

/* Turns it into an error page that states the problem. */
void response_refuse(struct response *response, int status, const char *problem);

/* Refuses a target that names the other one of http and https, which means another server; returns
 * true then. */
bool response_refuse_scheme(struct response *response, const struct request *request,
                            enum scheme scheme);

/* Applies the preconditions of the request to a 200 or 203 response, and its ranges to a 200. */
void response_apply_conditions(struct response *response, const struct request *request,
                               struct moment now);

enum persistence {
    PERSISTENCE_CLOSE,
    PERSISTENCE_IMPLIED,    /* the default of HTTP/1.1 */
    PERSISTENCE_KEEP_ALIVE, /* HTTP/1.0 needs the field */
};

/* Writes the head, as HTTP/1.0 if `simple`. */
void response_write_head(const struct response *response, enum persistence persistence, bool simple,
                         struct moment now, struct buffer *output);

/* Writes the head of part `index` of a multipart response; if `index` is range_count, its end. */
void response_write_part(const struct response *response, int index, struct buffer *output);

/* Returns the length of the body, with the heads of its parts. */
uint64_t response_length(const struct response *response);

struct text response_reason(int status);

#endif
