/* A process that keeps the rights which its maker gives up. */
#ifndef COMMON_BASE_HELPER_PROCESS_H
#define COMMON_BASE_HELPER_PROCESS_H

#include <stdbool.h>

/* HELPER_PROCESS_EXECUTES: programs that it starts get the rights that their files give them. */
enum helper_process_programs { HELPER_PROCESS_ONLY, HELPER_PROCESS_EXECUTES };

/* Starts a process that does the work at the socket, its only descriptor beside the standard ones,
 * and then ends. The work shall end when all other ends of the socket are closed. Returns false,
 * with errno set, if the process cannot be made. */
bool helper_process_start(const char *name, int socket,
                          void (*work)(int socket, const void *argument), const void *argument,
                          enum helper_process_programs programs);

#endif
