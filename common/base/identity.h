/* The user that this process runs as. */
#ifndef COMMON_BASE_IDENTITY_H
#define COMMON_BASE_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

struct identity {
    const char *name; /* NULL: the user who started this process */
    uid_t user;
    gid_t group;
};

/* Finds the user with this name. With NULL, root becomes "nobody", and others remain who they are.
 * False after it has printed why. */
bool identity_find(struct identity *identity, const char *name);

/* Becomes that user for good. False after it has printed why. */
bool identity_take(const struct identity *identity);

#endif
