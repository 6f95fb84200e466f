/* Opens files below a directory: the kernel refuses any path or symbolic link that leads out. */
#ifndef COMMON_BASE_OPEN_BENEATH_H
#define COMMON_BASE_OPEN_BENEATH_H

/* Works as openat(). An empty path opens the directory itself. */
int open_beneath(int directory, const char *path, int flags);

#endif
