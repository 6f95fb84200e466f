/* Memory that a server holds for a study, like a process that has grown. */
#ifndef COMMON_BASE_BALLAST_H
#define COMMON_BASE_BALLAST_H

#include <stdbool.h>
#include <stdint.h>

/* Returns false if this machine, or the control group, has less memory: the kernel may promise
 * more, and end a process that uses it. */
bool ballast_is_possible(uint64_t bytes);

/* Maps so many bytes of private memory and writes to each page, so that a fork has to copy their
 * page tables. NULL, with errno set, if there is not so much memory, or if the kernel has no huge
 * pages. */
void *ballast_take(uint64_t bytes, bool huge_pages);

/* Says whether children that are forked from now on get a copy of this memory, as they do at first.
 * NULL: there is none. */
void ballast_inherit(void *memory, uint64_t bytes, bool inherited);

#endif
