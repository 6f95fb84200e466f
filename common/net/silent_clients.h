/* Clients that have connected and have said nothing yet. Where listener_defer() tells it to, the
 * kernel holds them back: the server does not see them, and the end of the listener resets them. */
#ifndef COMMON_NET_SILENT_CLIENTS_H
#define COMMON_NET_SILENT_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel holds no client back for longer than this: LISTENER_DEFER and a round trip to a
 * distant client. */
#define SILENT_CLIENTS_MILLISECONDS 1500

/* Asks the kernel, outside a sandbox, whether there is one at the port. If it does not tell, there
 * is none. */
bool silent_clients_exist(uint16_t port);

#endif
