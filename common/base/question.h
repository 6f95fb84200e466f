/* Questions to a helper process. Each has a socket of its own for the answer, which no other
 * process can take. */
#ifndef COMMON_BASE_QUESTION_H
#define COMMON_BASE_QUESTION_H

#include <stddef.h>

/* So long a process waits for an answer. Under valgrind, beside other work, a first signature takes
 * longer. */
#ifndef QUESTION_SECONDS
#define QUESTION_SECONDS 5
#endif

/* Sends a question with one end of a new pair of sockets. Returns the other end, where the answer
 * arrives; or -1. */
int question_send(int socket, const void *data, size_t size);

#endif
