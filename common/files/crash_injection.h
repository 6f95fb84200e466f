/* A handler that dies of one request: only in the servers that `make crash` builds for the study of
 * that name. In all others this is nothing. */
#ifndef COMMON_FILES_CRASH_INJECTION_H
#define COMMON_FILES_CRASH_INJECTION_H

#include "common/base/text.h"

#ifdef CRASH_PATH

#include <stdlib.h>
#include <sys/prctl.h>

/* Without a core file: how long it takes to write one is not what the study asks. */
static inline void crash_injection_check(struct text path)
{
    const struct text magic = TEXT(CRASH_PATH);

    if (text_equal(path, magic)) {
        prctl(PR_SET_DUMPABLE, 0);
        abort();
    }
}

#else

static inline void crash_injection_check(struct text path)
{
    (void)path;
}

#endif

#endif
