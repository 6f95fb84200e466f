/* The fields of a stored response (RFC 9111, sections 3.1 and 3.2). */
#ifndef COMMON_PROXY_STORED_FIELDS_H
#define COMMON_PROXY_STORED_FIELDS_H

#include "common/base/text.h"

#include <stdint.h>

/* Writes the fields of a response that a shared cache stores, except those of one name, which may
 * be empty. */
void stored_fields_write(struct text fields, struct text except, struct buffer *stored);
/* Writes the stored fields as updated by those of a 304 or of a response to HEAD. */
void stored_fields_update(struct text stored, struct text update, struct buffer *updated);

/* Returns true if a 304 with these fields can be about the stored response: its validators are not
 * those of another one. */
bool stored_fields_confirm(struct text stored, struct text update);
/* Returns true if a response to HEAD with these fields is about the stored one. */
bool stored_fields_match_head(struct text stored, uint64_t length, struct text update);

#endif
