/* The seats of connections, on the scoreboard: who has one, and which connection gives its seat up
 * when there are not enough. */
#ifndef COMMON_SEATS_H
#define COMMON_SEATS_H

#include "common/net/address_limit.h"
#include "common/scoreboard.h"

#include <signal.h>

/* Each process has its own. All functions take -1 for a connection that has no seat. */
struct seats {
    struct scoreboard *board;
    struct seat *all;
    int count;
    struct address_limit limit;
    _Atomic int *of_socket; /* the seat of each socket of this process */
    int sockets;
};

/* The scoreboard has address_limit_size() bytes for limits. False, with errno set, if it fails. */
bool seats_open(struct seats *seats, const struct scoreboard_parts *parts,
                const struct address_limit *limit);
/* Also lets seats_note() note, for threads that serve what another accepts. A child process knows
 * its seat, and would pay for this memory at each fork. */
bool seats_open_notes(struct seats *seats);
void seats_close(struct seats *seats);

/* The owner of a seat whose process or worker is not known yet, or that a thread has: a thread
 * cannot die alone. */
#define SEATS_OWNER_UNKNOWN (-1)

/* Takes a free seat for a client with this address; -1 if there is none. SEATS_REFUSED if the
 * address has too many connections. */
#define SEATS_REFUSED (-2)
int seats_take(struct seats *seats, int owner, const union address *client);
void seats_leave(struct seats *seats, int seat);
/* Gives a seat whose owner is unknown to this one. It may have been left already. */
void seats_assign(struct seats *seats, int seat, int owner);
/* The owner of the seats of a worker: if it dies, they are found by its number. */
static inline int seats_owner_of_worker(int number)
{
    return number + 1;
}
/* The first seat of a process or worker; -1 if it has none. */
int seats_find_owner(const struct seats *seats, int owner);
/* Leaves all seats of a process or worker that has died. */
void seats_leave_all(struct seats *seats, int owner);

/* Notes the seat of a socket; finds it. Without seats_open_notes(), none is found. */
void seats_note(struct seats *seats, int socket, int seat);
int seats_find(const struct seats *seats, int socket);

/* A process or thread is going to wait for its client, with this standing (see
 * connection_standing()). While it waits, SEATS_SIGNAL may ask it for its seat; so the signal must
 * be blocked until then. */
#define SEATS_SIGNAL     SIGURG
#define SEATS_SINCE_BITS 48 /* of a standing: since when it waits, in milliseconds */
void seats_wait(struct seats *seats, int seat, int64_t standing);
/* It waits no longer. Returns true if it was asked for its seat. */
bool seats_resume(struct seats *seats, int seat);

/* Only connections that have waited for so long are asked. */
#define SEATS_GRACE_MILLISECONDS 250
/* While clients wait, whoever accepts looks again after this long for a seat that can be had. */
#define SEATS_LOOK_MILLISECONDS 25
/* Asks connections for their seats, until `count` of them have been asked and have not answered. */
void seats_ask(struct seats *seats, int count, int64_t now);

/* A connection that may be asked. */
struct seats_candidate {
    int64_t standing;
    void *connection; /* of the caller */
};

/* Sorts them, the first to go first. */
void seats_sort(struct seats_candidate *candidates, size_t count);

/* Returns true if a connection with this standing has waited long enough to be asked. */
bool seats_may_ask(int64_t standing, int64_t now);
/* Returns how many of so many connections may be asked at the same time. */
int seats_at_once(int64_t connections);

#endif
