/* The listening sockets go to the program that follows a server. A process outside the sandbox,
 * with the rights that the server was started with, starts that program. For a server that lacks
 * the right, it also refuses new clients and looks for silent ones. It obeys the first process of
 * the server alone. */
#ifndef COMMON_NET_LISTENER_HANDOVER_H
#define COMMON_NET_LISTENER_HANDOVER_H

#include "common/net/listener.h"

#include <sys/types.h>

/* The sockets that the server before this one has passed to this process. */
struct listener_handover {
    int listeners;          /* how many; 0: there was no such server */
    int streams, datagrams; /* sockets of each listener */
    bool adopted;           /* they belong to a service manager */
    int channel;            /* to the server before; -1: none */
};

/* Takes what was passed. It does so once: programs that this process starts do not see it. */
struct listener_handover listener_handover_take(void);
/* The listener with this number, from 0. False, after it has printed why, if it does not listen. */
bool listener_handover_get(const struct listener_handover *handover, int number,
                           struct listener *listener);

/* Starts the process; returns the socket to it, or -1 with errno set. It ends when the last process
 * that has inherited the socket ends. */
int listener_handover_open(char **argv);

/* Passes a listener to the process, which holds it for the next program. */
bool listener_handover_pass(int helper, const struct listener *listener);

/* The kinds of messages between the server and the process. */
enum listener_handover_kind {
    LISTENER_HANDOVER_REFUSE, /* refuse new clients; and the answer: `error` says whether it could
                               */
    LISTENER_HANDOVER_SILENT, /* look for clients that say nothing; and the answer: EAGAIN as
                                 `error` says that there are some */
    LISTENER_HANDOVER_START,  /* start the program */
    LISTENER_HANDOVER_GO,     /* to the program: this server hands over */
    LISTENER_HANDOVER_STOP,   /* to the program: stop, as this server does */
    LISTENER_HANDOVER_READY,  /* the program is ready: it is `process` */
    LISTENER_HANDOVER_FAILED, /* it ended before it was ready; or could not be started, by `error`
                               */
};
struct listener_handover_message {
    enum listener_handover_kind kind;
    pid_t process;
    int error;
    unsigned number; /* of the start that it is about; 0: of none */
};

bool listener_handover_send(int socket, const struct listener_handover_message *message);
/* Receives a message if there is one. The end of the messages counts as one of the kind `end`. */
bool listener_handover_receive(int socket, struct listener_handover_message *message,
                               enum listener_handover_kind end);

/* Has the process refuse new clients at all listeners, as listener_refuse() does. */
bool listener_handover_refuse(int helper);
/* Has it look for silent clients (silent_clients.h). */
bool listener_handover_finds_silent(int helper);

#endif
