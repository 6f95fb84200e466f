/* The sockets that a service manager such as systemd passes to a process, and messages to it. */
#ifndef COMMON_BASE_SERVICE_MANAGER_H
#define COMMON_BASE_SERVICE_MANAGER_H

/* The first of the sockets that the service manager listens at. */
#define SERVICE_MANAGER_FIRST 3
/* Returns how many such sockets it has passed to this process (LISTEN_FDS); 0: none. */
int service_manager_sockets(void);

/* Connects to the service manager (NOTIFY_SOCKET); -1 if it expects no messages. */
int service_manager_open(void);
/* Sends it a state, such as "READY=1". Does nothing for -1. */
void service_manager_tell(int socket, const char *state);

#endif
