/* The listening sockets go to the program that follows a server. A process outside the sandbox,
 * with the rights that the server was started with, starts that program, and refuses new clients
 * for a server that lacks the right to. It obeys the first process of the server alone. */
#ifndef COMMON_NET_HANDOVER_H
#define COMMON_NET_HANDOVER_H

#include "common/net/listener.h"

#include <sys/types.h>

/* What the server before this one has passed to this process. */
struct handover {
    int listeners;          /* how many; 0: there was no such server */
    int streams, datagrams; /* sockets of each listener */
    bool adopted;           /* they belong to a service manager */
    int channel;            /* to the server before; -1: none */
};

/* Takes what was passed. It does so once: programs that this process starts do not see it. */
struct handover handover_take(void);
/* The listener with this number, from 0. False, after it has printed why, if it does not listen. */
bool handover_listener(const struct handover *handover, int number, struct listener *listener);

/* Starts the process; returns the socket to it, or -1 with errno set. It ends when the last process
 * that has inherited the socket ends. */
int handover_open(char **argv);

/* Has the process refuse new clients, as listener_refuse() does. */
bool handover_refuse(int helper, const struct listener *listener);

/* Passes a listener to the program that is started next. */
bool handover_pass(int helper, const struct listener *listener);
/* Starts the program. What becomes of it is told through the channel: one report, or the end of the
 * channel if it ends without one. */
bool handover_start(int helper, int channel);

struct handover_report {
    pid_t process; /* it is ready */
    int error;     /* errno of starting it; or 0 */
};

#endif
