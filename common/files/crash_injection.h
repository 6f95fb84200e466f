/* Aborts the server at one request, in the builds of `make crash` for the study `crash`. In all
 * other builds it does nothing. */
#ifndef COMMON_FILES_CRASH_INJECTION_H
#define COMMON_FILES_CRASH_INJECTION_H

#include "common/base/text.h"

#ifdef CRASH_PATH

#include <stdlib.h>
#include <sys/prctl.h>

/* No core file: the study does not measure how long it takes to write one. */
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
