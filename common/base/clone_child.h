/* Makes children by clone(), which share with this process what the flags name. */
#ifndef COMMON_BASE_CLONE_CHILD_H
#define COMMON_BASE_CLONE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Prepares for so many children at once that share memory. False, with errno set, if this kernel
 * lacks what that needs. */
bool clone_child_open(int limit, size_t stack_bytes);

/* Makes a child that calls the function with a copy of the argument, and ends. Returns its id; -1,
 * with errno set, if it fails. Children that share memory have no exit handlers to run; they return
 * from the function. */
#define CLONE_CHILD_ARGUMENT 64
pid_t clone_child(int flags, void (*function)(const void *argument), const void *argument,
                  size_t size);

#endif
