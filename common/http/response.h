/* A reply: what a service says of it, and how it is written. */
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
    uint64_t start; /* of the body in the file */
};

/* What is said to those who keep replies. */
enum caching {
    CACHING_UNSAID,
    CACHING_VALIDATED, /* no-cache: asked again each time */
    CACHING_FOR,       /* max_age */
};

struct response {
    int status;
    struct text reason; /* or empty, for the usual one */
    char *fields;       /* instead of those that the server writes: lines, from malloc, freed with
                         * the reply; or NULL */
    size_t fields_length;
    struct text type; /* media type */
    struct text allow;
    const struct request *moved_to; /* whose target wants a slash behind its path; or NULL */
    bool has_validators;
    bool in_parts; /* ranges are what it would be given for: so it says, though it has none */
    bool bare;     /* written as short as can be: its status, without a body */
    int64_t modified;
    enum caching caching;
    int max_age; /* seconds */
    struct buffer etag;
    char etag_space[RESPONSE_ETAG_SIZE];
    struct body body;
    uint64_t whole;    /* bytes of the representation that ranges were taken from */
    int range_count;   /* 0: the whole body */
    uint64_t boundary; /* between several ranges */
    struct range ranges[RANGE_LIMIT];
};

/* Empties it, for a new reply. */
void response_start(struct response *response);
/* Lets go of all that it holds. */
void response_end(struct response *response);

/* A body of text from malloc, which is freed with the reply. */
struct body response_page(const struct buffer *page);

/* Makes it a page that says what is wrong. */
void response_refuse(struct response *response, int status, const char *problem);

/* Makes it one that says that it does not fit where there is room for so many bytes: what is wrong
 * anyway remains so. */
void response_shorten(struct response *response, uint64_t room);

/* Applies the preconditions and the ranges of the request to a 200 reply. */
void response_settle(struct response *response, const struct request *request, struct moment now);

enum persistence {
    PERSISTENCE_CLOSE,
    PERSISTENCE_IMPLIED,    /* HTTP/1.1 keeps alive without a word */
    PERSISTENCE_KEEP_ALIVE, /* HTTP/1.0 has to be told */
};

/* Writes the head; of HTTP/1.0 if `simple`. */
void response_write_head(const struct response *response, enum persistence persistence, bool simple,
                         struct moment now, struct buffer *output);

/* Writes what comes before part `index` of a multipart reply; with range_count, what ends it. */
void response_write_part(const struct response *response, int index, struct buffer *output);

/* The length of the body, with all that stands between its parts. */
uint64_t response_length(const struct response *response);

struct text response_reason(int status);

#endif
