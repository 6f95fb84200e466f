/* The keys of session tickets, and their renewal. */
#include "common/net/tls_tickets.h"

#include <string.h>
#include <sys/random.h>

/* Stands beside the period of a slot while its key is written. */
#define WRITING (UINT64_C(1) << 63)

/* Periods count from 2: neither the current one nor the one before is 0, which marks an empty
 * slot. */
static uint64_t period_of(int64_t now)
{
    return (uint64_t)now / TLS_TICKETS_SECONDS + 2;
}

static struct tls_tickets_slot *slot_of(struct tls_tickets *tickets, uint64_t period)
{
    return &tickets->slots[period % 2];
}

/* Copies the key of that period; false if there is none, or it changed meanwhile. */
static bool copy(struct tls_tickets *tickets, uint64_t period, struct ticket_key *key)
{
    struct tls_tickets_slot *slot = slot_of(tickets, period);

    if (atomic_load(&slot->period) != period)
        return false;
    *key = slot->key;
    return atomic_compare_exchange_strong(&slot->period, &period, period);
}

/* Puts a key, or none, in the place of an older one. */
static void put(struct tls_tickets *tickets, uint64_t period, uint64_t content,
                const struct ticket_key *key)
{
    struct tls_tickets_slot *slot = slot_of(tickets, period);
    uint64_t old = atomic_load(&slot->period);

    if (old == content || (old & ~WRITING) >= period ||
        !atomic_compare_exchange_strong(&slot->period, &old, period | WRITING))
        return;
    slot->key = *key;
    atomic_store(&slot->period, content);
}

/* Makes the key of a period, and removes one that is older than that of the period before. */
static bool make(struct tls_tickets *tickets, uint64_t period, struct ticket_key *key)
{
    const struct ticket_key nothing = {0};
    struct ticket_key own;

    if (getrandom(&own, sizeof own, 0) != (ssize_t)sizeof own)
        return false;
    put(tickets, period, period, &own);
    if (atomic_load(&slot_of(tickets, period - 1)->period) != period - 1)
        put(tickets, period - 1, 0, &nothing);
    if (!copy(tickets, period, key))
        *key = own;
    explicit_bzero(&own, sizeof own);
    return true;
}

bool tls_tickets_current(struct tls_tickets *tickets, int64_t now, struct ticket_key *key)
{
    uint64_t period = period_of(now);

    return copy(tickets, period, key) || make(tickets, period, key);
}

enum ticket_age tls_tickets_find(struct tls_tickets *tickets, const unsigned char *name,
                                 int64_t now, struct ticket_key *key)
{
    uint64_t period = period_of(now);

    for (int age = 0; age < 2; age++)
        if (copy(tickets, period - (uint64_t)age, key) &&
            memcmp(name, key->name, TLS_TICKETS_NAME_SIZE) == 0)
            return age == 0 ? TICKET_FRESH : TICKET_AGEING;
    explicit_bzero(key, sizeof *key);
    return TICKET_UNKNOWN;
}
