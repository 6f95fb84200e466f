/* Questions to a helper process. Each has a socket of its own for the answer, which no other
 * process can take. */
#ifndef COMMON_BASE_QUESTION_H
#define COMMON_BASE_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

/* So long a process waits to ask, and then for an answer. Under valgrind, beside other work, a
 * first signature takes longer. */
#ifndef QUESTION_SECONDS
#define QUESTION_SECONDS 5
#endif

/* Makes the two ends of the way to a helper process; false, with errno set, on failure. */
bool question_open(int *asking, int *answering);

/* Sends a question with one end of a new pair of sockets. Returns the other end, where the answer
 * arrives; or -1. */
int question_send(int socket, const void *data, size_t size);

#endif
