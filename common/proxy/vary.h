/* The Vary field (RFC 9111, section 4.1): which requests may share a response. */
#ifndef COMMON_PROXY_VARY_H
#define COMMON_PROXY_VARY_H

#include "common/base/text.h"

/* Returns true if no other request can share the response, or it may depend on the client's
 * address. */
bool vary_matches_nothing(struct text fields);
/* Writes the names that Vary lists, each once, in small letters, with commas between them. */
void vary_write_list(struct text fields, struct buffer *list);
/* Writes the fields of a request that the list names: the result is equal for requests that may
 * share a response. Forms of a field that mean the same become equal: they may differ by blanks in
 * lists, and for languages, encodings and character sets also by case, by how weights are written,
 * and by the order of elements with different weights. The result is at most twice as long as the
 * fields and the list together. */
void vary_select(struct text list, struct text request_fields, struct buffer *selected);

#endif
