/* A small process that forks the children of a server that has grown: a fork costs what the process
 * that forks has mapped. */
#ifndef COMMON_WORKERS_FORK_TEMPLATE_H
#define COMMON_WORKERS_FORK_TEMPLATE_H

#include "common/server.h"

struct fork_template {
    pid_t process; /* 0: it has been reaped */
    int socket;    /* to it; 0: none */
};

/* Makes the template, if the options ask for one: a copy of this process without its ballast. In
 * its children it calls serve(), which does not return. Ends the process if it fails. */
void fork_template_open(struct fork_template *template, struct server *server,
                        void (*serve)(int socket));

/* As fork(), for the connection that server_accept() returned last. The child is one of this
 * process, and serves. If there is no template, or it has died, this process forks by itself. */
pid_t fork_template_fork(struct fork_template *template, struct server *server, int socket);

/* Returns true if this child, which was reaped, was the template. */
bool fork_template_reap(struct fork_template *template, pid_t child);

/* Ends the template; the model has to reap it. */
void fork_template_close(struct fork_template *template);

#endif
