/* A process that keeps the rights which its maker gives up. */
#ifndef COMMON_BASE_HELPER_PROCESS_H
#define COMMON_BASE_HELPER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* HELPER_PROCESS_EXECUTES: programs that it starts get the rights that their files give them. */
enum helper_process_programs { HELPER_PROCESS_ONLY, HELPER_PROCESS_EXECUTES };

/* A supervisor makes workers and replaces them; a worker does the work. */
enum helper_process_role { HELPER_PROCESS_SUPERVISOR, HELPER_PROCESS_WORKER };

/* Takes all rights from the calling process that its role does not need. */
struct helper_process_confinement {
    void (*enter)(enum helper_process_role role, const void *argument); /* may be NULL */
    const void *argument;
};

void helper_process_confine(const struct helper_process_confinement *confinement,
                            enum helper_process_role role);

/* Starts a process that does the work at the socket, its only descriptor beside the standard ones,
 * and then ends. The work shall end when all other ends of the socket are closed. Returns false,
 * with errno set, if the process cannot be made. */
bool helper_process_start(const char *name, int socket,
                          void (*work)(int socket, const void *argument), const void *argument,
                          enum helper_process_programs programs);

/* Processes that share the work of a helper process. */
struct helper_process_crew {
    int count;
    void (*work)(const void *argument);
    void (*died)(const void *argument, pid_t process); /* before another one starts; may be NULL */
    const void *argument;
};

/* Called by the work of a helper process: makes these processes, and another one in place of each
 * that dies, while there is somebody at the other end of the socket. Returns when all of them have
 * ended. */
void helper_process_supervise(int socket, const struct helper_process_crew *crew);

#endif
