/* Opening files below a directory: the kernel itself sees to it that no path leaves it, by whatever
 * symbolic link. */
#ifndef COMMON_BASE_OPEN_BENEATH_H
#define COMMON_BASE_OPEN_BENEATH_H

/* As openat(). An empty path is the directory itself. */
int open_beneath(int directory, const char *path, int flags);

#endif
