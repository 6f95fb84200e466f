/* Header fields in the form of their lines: each is "Name: value" with CR and LF. An empty line may
 * end them. */
#ifndef COMMON_HTTP_FIELDS_H
#define COMMON_HTTP_FIELDS_H

#include "common/base/text.h"

/* Reads the field at `*from`, and moves `*from` behind it; false if there is no further field. */
bool fields_next(struct text fields, size_t *from, struct text *name, struct text *value);
/* Reads the next field of that name, in the same way. */
bool fields_find(struct text fields, struct text name, size_t *from, struct text *value);

bool fields_has(struct text fields, struct text name);
/* Reads the value of the first field of that name; false if there is none. */
bool fields_first(struct text fields, struct text name, struct text *value);
/* Reads the value of the only field of that name; false if there is none, or several. */
bool fields_single(struct text fields, struct text name, struct text *value);

/* Returns true if the comma-separated lists in the fields of that name have the element; letters
 * match in either case. */
bool fields_list(struct text fields, struct text name, struct text element);

/* Returns true for a hop-by-hop field, which a proxy must not forward (RFC 9110, section 7.6.1). */
bool fields_is_hop(struct text fields, struct text name);
/* Returns the fields that fields_is_hop() needs to judge the names of many: none if there is no
 * Connection. */
struct text fields_for_hops(struct text fields);

void fields_add(struct buffer *buffer, struct text name, struct text value);

#endif
