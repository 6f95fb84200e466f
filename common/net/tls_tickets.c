/* The keys of session tickets, and their renewal. */
#include "common/net/tls_tickets.h"

#include <string.h>
#include <sys/random.h>

bool tls_tickets_open(struct tls_tickets *tickets)
{
    tickets->filled = false;
    return lock_open(&tickets->lock);
}

static bool begin(struct tls_tickets *tickets, int64_t now)
{
    tickets->filled = getrandom(&tickets->current, sizeof tickets->current, 0) ==
                      (ssize_t)sizeof tickets->current;
    tickets->since = now;
    return tickets->filled;
}

/* Replaces the previous key by random bytes: no ticket names them. */
static bool forget_previous(struct tls_tickets *tickets)
{
    return getrandom(&tickets->previous, sizeof tickets->previous, 0) ==
           (ssize_t)sizeof tickets->previous;
}

/* Takes the lock and renews the keys if it is time; false if there are none. */
static bool take(struct tls_tickets *tickets, int64_t now)
{
    int64_t age;

    if (!lock_take(&tickets->lock))
        tickets->filled = false;
    age = now - tickets->since;
    if (!tickets->filled || age >= 2 * TLS_TICKETS_SECONDS) {
        tickets->filled = false;
        return forget_previous(tickets) && begin(tickets, now);
    }
    if (age < TLS_TICKETS_SECONDS)
        return true;
    tickets->previous = tickets->current;
    return begin(tickets, tickets->since + TLS_TICKETS_SECONDS);
}

bool tls_tickets_current(struct tls_tickets *tickets, int64_t now, struct ticket_key *key)
{
    bool good = take(tickets, now);

    if (good)
        *key = tickets->current;
    lock_give(&tickets->lock);
    return good;
}

enum ticket_age tls_tickets_find(struct tls_tickets *tickets, const unsigned char *name,
                                 int64_t now, struct ticket_key *key)
{
    enum ticket_age age = TICKET_UNKNOWN;

    if (take(tickets, now)) {
        if (memcmp(name, tickets->current.name, TLS_TICKETS_NAME_SIZE) == 0)
            age = TICKET_FRESH;
        else if (memcmp(name, tickets->previous.name, TLS_TICKETS_NAME_SIZE) == 0)
            age = TICKET_AGEING;
    }
    if (age != TICKET_UNKNOWN)
        *key = age == TICKET_FRESH ? tickets->current : tickets->previous;
    lock_give(&tickets->lock);
    return age;
}
