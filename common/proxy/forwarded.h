/* The fields that tell an origin about the client: Forwarded (RFC 7239), and X-Forwarded-For and
 * its kin. Pure functions. */
#ifndef COMMON_PROXY_FORWARDED_H
#define COMMON_PROXY_FORWARDED_H

#include "common/base/text.h"

#include <stdbool.h>

/* Which of them the proxy sends. */
enum forwarded_fields {
    FORWARDED_OFF,
    FORWARDED_STANDARD, /* Forwarded */
    FORWARDED_X,        /* X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host */
    FORWARDED_BOTH,
};

struct forwarded {
    enum forwarded_fields fields;
    bool append;         /* the client is a proxy that is trusted: what it says is kept */
    struct text address; /* of the client, without brackets; empty: it is not known */
    struct text scheme;
    struct text host; /* that the client named; empty: this is not told */
};

/* Returns true if the client's field of that name is not forwarded as it is. A hyphen is the same
 * as an underscore: to many origins it is. */
bool forwarded_replaces(const struct forwarded *forwarded, struct text name);
/* Writes the fields for the origin. `fields` are those of the client. */
void forwarded_write(const struct forwarded *forwarded, struct text fields, struct buffer *output);

#endif
