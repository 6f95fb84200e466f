/* A process that looks one name up, again and again, and the addresses that it has found. */
#ifndef COMMON_NET_NAME_LOOKUP_H
#define COMMON_NET_NAME_LOOKUP_H

#include "common/base/helper_process.h"
#include "common/net/address.h"

/* Name servers beyond these are not asked. */
#define NAME_LOOKUP_SERVERS 3

struct name_lookup;

struct name_lookup_settings {
    struct text name;
    uint16_t port;                              /* of the addresses */
    union address servers[NAME_LOOKUP_SERVERS]; /* that are asked, in this order */
    int server_count;
    struct helper_process_confinement confinement;
};

/* Reads the name servers of a file such as /etc/resolv.conf. */
void name_lookup_read_servers(const char *path, struct name_lookup_settings *settings);

/* Starts the process, and waits for its first answer. On failure it prints why and returns NULL.
 * The process ends when all processes that have inherited the result have ended. */
struct name_lookup *name_lookup_open(const struct name_lookup_settings *settings);
void name_lookup_close(struct name_lookup *lookup);

/* Returns the addresses that were found last; false if there are none, or if they are too old.
 * Never waits. */
bool name_lookup_find(const struct name_lookup *lookup, int64_t now, struct address_list *list);

#endif
