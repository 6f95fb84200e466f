/* Makes children by clone(), which share with this process what the flags name. */
#ifndef COMMON_BASE_CLONE_CHILD_H
#define COMMON_BASE_CLONE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Prepares for children with these flags of clone(), so many at once. False, with errno set, if
 * this kernel lacks what they need. */
bool clone_child_open(int flags, int limit, size_t stack_bytes);

/* Makes a child that calls the function with a copy of the argument, and ends. Returns its id; -1,
 * with errno set, if it fails. All children have the flags that were prepared for. */
#define CLONE_CHILD_ARGUMENT 64
pid_t clone_child(void (*function)(const void *argument), const void *argument, size_t size);

/* From now on the kernel writes to *id the id of each child whose memory is a copy, before the
 * child runs: so the id is known even if this process dies at once. */
void clone_child_note(_Atomic pid_t *id);

#endif
