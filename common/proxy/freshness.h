/* The rules of a shared cache (RFC 9111; RFC 5861 for replies that may be used while stale), as
 * pure functions: they read header fields, and times that are handed in. */
#ifndef COMMON_PROXY_FRESHNESS_H
#define COMMON_PROXY_FRESHNESS_H

#include "common/base/text.h"

#include <stdint.h>

/* Seconds that no age or lifetime is over (RFC 9111, section 1.2.2). */
#define FRESHNESS_FOREVER INT64_C(2147483648)
/* What a heuristic lifetime is never over. */
#define FRESHNESS_HEURISTIC_LIMIT INT64_C(86400)

/* What Cache-Control says, in a request or a reply. Seconds are -1 where nothing is said. */
struct directives {
    bool no_store;
    bool no_cache;
    bool no_cache_fields; /* the fields that it names may not be used without validation */
    bool is_private;
    bool private_fields; /* the fields that it names may not be stored */
    bool is_public;
    bool must_revalidate;
    bool proxy_revalidate;
    bool must_understand;
    bool only_if_cached;
    int64_t max_age;
    int64_t s_maxage;
    int64_t min_fresh;
    int64_t max_stale;
    int64_t stale_if_error;
    int64_t stale_while_revalidate;
};

/* Reads all Cache-Control fields; in a request without any, Pragma. What is malformed is read in
 * the most restrictive way. */
void freshness_directives(struct text fields, bool of_request, struct directives *directives);

/* What a cache has to know of a reply. */
struct cached_response {
    int status;
    struct directives directives;
    int64_t requested, received; /* when the request went out, and the head of the reply came */
    int64_t date;                /* when it was made, or `received` */
    int64_t age;                 /* what Age said */
    bool has_expires, has_modified, has_cookie;
    int64_t expires, modified;
    struct text etag; /* with its quotes, perhaps weak; empty if there is none */
    struct text modified_text;
};

void freshness_read(struct cached_response *response, int status, struct text fields,
                    int64_t requested, int64_t received);

/* Whether a reply of that status is about one request alone: never stored, and no news of what is.
 */
bool freshness_is_for_one(int status);
/* Returns true if the request has credentials: the response says nothing of what others get. */
bool freshness_has_credentials(struct text request_fields);
/* Whether the reply to a GET may be stored. */
bool freshness_may_store(const struct cached_response *response, struct text request_fields,
                         struct text reply_fields);

/* How long it is fresh from when it was made, and how old it is now, in seconds. */
int64_t freshness_lifetime(const struct cached_response *response);
int64_t freshness_age(const struct cached_response *response, int64_t now);
/* Whether it could be used as it is, for a request that asks for nothing more. */
bool freshness_is_fresh(const struct cached_response *response, int64_t now);

enum freshness_use {
    FRESHNESS_FRESH,    /* to be used as it is */
    FRESHNESS_STALE,    /* the client takes it stale */
    FRESHNESS_MEANTIME, /* to be used stale, and validated at the same time */
    FRESHNESS_VALIDATE, /* to be used only once the origin has confirmed it */
};

/* How a stored reply may be used for a request. */
enum freshness_use freshness_judge(const struct cached_response *response,
                                   const struct directives *request, int64_t now);

/* Whether it may be used after the origin has failed. */
bool freshness_bridges_error(const struct cached_response *response,
                             const struct directives *request, int64_t now);
/* Whether a reply of that status is such a failure. */
bool freshness_is_error(int status);

/* Copies the fields of a reply that a shared cache keeps. */
void freshness_keep(struct text fields, struct buffer *kept);

/* Whether a 304 is about the stored reply: its validators do not speak of another one. */
bool freshness_confirms(struct text stored, struct text update);
/* Writes the stored fields as a 304 (or a reply to HEAD) updates them. */
void freshness_merge(struct text stored, struct text update, struct buffer *merged);
/* Whether the reply to a HEAD is about the stored one. */
bool freshness_same_head(struct text stored, uint64_t length, struct text update);

/* Whether Cache-Control, in the form no-cache="a, b" or private="a, b", names the field. */
bool freshness_names(struct text fields, struct text directive, struct text name);

/* Vary: whether it can match at all; and the fields of a request that it lists, in a form that is
 * equal where the requests may share a reply. */
bool freshness_varies_on_all(struct text fields);
/* Writes the names that Vary lists, each once, in small letters, with commas between them. */
void freshness_vary_list(struct text fields, struct buffer *list);
void freshness_select(struct text list, struct text request_fields, struct buffer *selected);

#endif
