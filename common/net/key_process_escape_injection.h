/* Lets a key file make a process that holds keys try to break out of its confinement, in the builds
 * of `make escape` for tests/sandbox_escape.t. In all other builds it does nothing. */
#ifndef COMMON_NET_KEY_PROCESS_ESCAPE_INJECTION_H
#define COMMON_NET_KEY_PROCESS_ESCAPE_INJECTION_H

#include "common/base/text.h"

#ifdef ESCAPE_PATH

#include <string.h>

/* Attempts the action that `name` says, as NAME or NAME/ARGUMENT. Returns the name of its error, or
 * "done". */
const char *key_escape_attempt(struct text name);

/* A file "escape NAME" makes the attempt. Returns the result; NULL for other files. */
static inline const char *key_escape_check(struct text file)
{
    const struct text start = TEXT("escape ");

    if (file.length <= start.length || memcmp(file.data, start.data, start.length) != 0)
        return NULL;
    file.length = text_find(file, '\n');
    return key_escape_attempt((struct text){file.data + start.length, file.length - start.length});
}

#else

static inline const char *key_escape_check(struct text file)
{
    (void)file;
    return NULL;
}

#endif

#endif
