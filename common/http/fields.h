/* Header fields, as the lines that hold them: each "Name: value" with CR and LF. An empty line ends
 * them. */
#ifndef COMMON_HTTP_FIELDS_H
#define COMMON_HTTP_FIELDS_H

#include "common/base/text.h"

/* Takes the next field, `*from` bytes into the lines, which moves behind it; false if there is
 * none. */
bool fields_next(struct text fields, size_t *from, struct text *name, struct text *value);
/* The same for the fields of one name. */
bool fields_find(struct text fields, struct text name, size_t *from, struct text *value);

/* Whether there is a field of that name, and the value of the first one. */
bool fields_has(struct text fields, struct text name);
bool fields_first(struct text fields, struct text name, struct text *value);
/* The value of the only field of that name; false if there is none, or several. */
bool fields_single(struct text fields, struct text name, struct text *value);

/* Whether the fields of one name, together one comma-separated list, have the element; letters
 * match in either case. */
bool fields_list(struct text fields, struct text name, struct text element);

/* Whether a field says something about one connection alone, and is not passed on (RFC 9110,
 * section 7.6.1): it is known to do so, or Connection names it. */
bool fields_is_hop(struct text fields, struct text name);

void fields_add(struct buffer *buffer, struct text name, struct text value);

#endif
