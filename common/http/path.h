/* Maps the path of a request target to a path below the root: a pure function. */
#ifndef COMMON_HTTP_PATH_H
#define COMMON_HTTP_PATH_H

#include "common/base/text.h"

#define PATH_LIMIT 4096

enum path_verdict {
    PATH_GOOD,
    PATH_MALFORMED, /* a bad escape, or a NUL byte */
    PATH_CLIMBS,    /* leaves the root by ".." */
    PATH_HIDDEN,    /* names a dotfile, or has an encoded slash: no document has such a name */
    PATH_LONG,
};

/* Decodes the percent-escapes of `target` once, drops empty and "." segments, and resolves "..".
 * `path` gets the result without a leading slash and with a NUL: "" is the root, and "a/" is a
 * directory. A result that does not fit into `size` bytes is PATH_LONG. */
enum path_verdict path_resolve(struct text target, char *path, size_t size, size_t *length);

#endif
