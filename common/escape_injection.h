/* Lets one request try to break out of the sandbox, in the builds of `make escape` for
 * tests/sandbox_escape.t. In all other builds it does nothing. */
#ifndef COMMON_ESCAPE_INJECTION_H
#define COMMON_ESCAPE_INJECTION_H

#include "common/base/text.h"

#ifdef ESCAPE_PATH

#include <string.h>

/* Attempts the action that `name` says, as NAME or NAME/ARGUMENT, and prints its result. */
void escape_attempt(struct text name);

static inline void escape_injection_check(struct text path)
{
    const struct text start = TEXT(ESCAPE_PATH);

    if (path.length > start.length && memcmp(path.data, start.data, start.length) == 0)
        escape_attempt((struct text){path.data + start.length, path.length - start.length});
}

#else

static inline void escape_injection_check(struct text path)
{
    (void)path;
}

#endif

#endif
