/* Structured fields (RFC 9651), as far as dictionaries need it. The parser is strict: a field with
 * any mistake has no meaning at all. */
#ifndef COMMON_HTTP_STRUCTURED_H
#define COMMON_HTTP_STRUCTURED_H

#include "common/base/text.h"

#include <stdint.h>

enum structured_kind {
    STRUCTURED_INTEGER,
    STRUCTURED_DECIMAL,
    STRUCTURED_STRING,
    STRUCTURED_TOKEN,
    STRUCTURED_BYTES,
    STRUCTURED_BOOLEAN,
    STRUCTURED_DATE,
    STRUCTURED_DISPLAY,
    STRUCTURED_LIST, /* in parentheses */
};

/* A member of a dictionary. Parameters are checked and left out. */
struct structured_member {
    struct text key;
    enum structured_kind kind;
    int64_t integer; /* of an integer or a date */
    bool truth;      /* of a boolean */
};

/* Reads the first member, and moves the text behind it and its comma. Returns false at the end, or
 * where the text is no dictionary: then some of it is left. */
bool structured_next(struct text *dictionary, struct structured_member *member);
/* Returns true if the whole text is a dictionary; one without members is one, too. */
bool structured_is_dictionary(struct text text);

#endif
