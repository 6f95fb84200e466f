/* Keeps the seats of connections, and asks those that wait longest to give theirs up. */
#include "common/seats.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More descriptors than this are never noted. */
#define SOCKETS_LIMIT 4000000

/* The standing of a seat whose connection does not wait, or is being asked, or has been asked. */
enum { STANDING_WORKS = 0, STANDING_CALLING = -1, STANDING_CALLED = -2 };

#define SINCE_MASK ((INT64_C(1) << SEATS_SINCE_BITS) - 1)

bool seats_open(struct seats *seats, const struct scoreboard_parts *parts,
                const struct address_limit *limit)
{
    *seats = (struct seats){
        .board = parts->board, .all = parts->seats, .count = parts->seat_count, .limit = *limit};
    return address_limit_open(&seats->limit, (uint64_t)seats->count, parts->limits);
}

bool seats_open_notes(struct seats *seats)
{
    struct rlimit descriptors = {.rlim_cur = 1024};
    void *memory;

    getrlimit(RLIMIT_NOFILE, &descriptors);
    if (descriptors.rlim_cur > SOCKETS_LIMIT)
        descriptors.rlim_cur = SOCKETS_LIMIT;
    memory = mmap(NULL, descriptors.rlim_cur * sizeof(int), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    seats->of_socket = memory;
    seats->sockets = (int)descriptors.rlim_cur;
    return true;
}

void seats_close(struct seats *seats)
{
    if (seats->sockets > 0)
        munmap(seats->of_socket, (size_t)seats->sockets * sizeof(int));
}

/* ---- owners ---- */

static bool claim(struct seat *seat, int owner)
{
    int none = 0;

    return atomic_load_explicit(&seat->owner, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong(&seat->owner, &none, owner);
}

static int take_between(const struct seats *seats, int from, int to, int owner)
{
    for (int i = from; i < to; i++)
        if (claim(&seats->all[i], owner))
            return i;
    return -1;
}

/* Begins at the first seat that is probably free. That number may be wrong: all processes write to
 * it. */
static int take_any(const struct seats *seats, int owner)
{
    _Atomic int *free_seat = &seats->board->free_seat;
    int from = atomic_load_explicit(free_seat, memory_order_relaxed), seat;

    if (from < 0 || from > seats->count)
        from = 0;
    seat = take_between(seats, from, seats->count, owner);
    if (seat < 0)
        seat = take_between(seats, 0, from, owner);
    if (seat >= 0)
        atomic_store_explicit(free_seat, seat + 1, memory_order_relaxed);
    return seat;
}

int seats_take(struct seats *seats, int owner, const union address *client)
{
    int seat = take_any(seats, owner);

    if (seat < 0 || address_limit_enter(&seats->limit, client, &seats->all[seat].address))
        return seat;
    seats_leave(seats, seat);
    atomic_fetch_add(&seats->board->refused, 1);
    return SEATS_REFUSED;
}

void seats_leave(struct seats *seats, int seat)
{
    struct seat *own = seat >= 0 ? &seats->all[seat] : NULL;
    _Atomic int *free_seat = &seats->board->free_seat;
    uint32_t address = own != NULL ? atomic_load(&own->address) : 0;

    if (own == NULL)
        return;
    if (address != 0) {
        address_limit_leave(&seats->limit, address);
        atomic_store(&own->address, 0);
    }
    atomic_store(&own->standing, STANDING_WORKS);
    atomic_store(&own->owner, 0);
    if (seat < atomic_load_explicit(free_seat, memory_order_relaxed))
        atomic_store_explicit(free_seat, seat, memory_order_relaxed);
}

void seats_assign(struct seats *seats, int seat, int owner)
{
    int unknown = SEATS_OWNER_UNKNOWN;

    if (seat >= 0)
        atomic_compare_exchange_strong(&seats->all[seat].owner, &unknown, owner);
}

int seats_find_owner(const struct seats *seats, int owner)
{
    for (int i = 0; i < seats->count; i++)
        if (atomic_load_explicit(&seats->all[i].owner, memory_order_relaxed) == owner)
            return i;
    return -1;
}

void seats_leave_all(struct seats *seats, int owner)
{
    for (int i = 0; i < seats->count; i++)
        if (atomic_load_explicit(&seats->all[i].owner, memory_order_relaxed) == owner)
            seats_leave(seats, i);
}

/* The number is one higher, since 0 means none. */
void seats_note(struct seats *seats, int socket, int seat)
{
    if (socket < seats->sockets)
        atomic_store_explicit(&seats->of_socket[socket], seat + 1, memory_order_relaxed);
}

int seats_find(const struct seats *seats, int socket)
{
    if (socket >= seats->sockets)
        return -1;
    return atomic_load_explicit(&seats->of_socket[socket], memory_order_relaxed) - 1;
}

/* ---- giving way ---- */

void seats_wait(struct seats *seats, int seat, int64_t standing)
{
    if (seat < 0 || standing == STANDING_WORKS)
        return;
    atomic_store(&seats->all[seat].owner, (int)gettid());
    atomic_store(&seats->all[seat].standing, standing);
}

/* While the signal is being sent, the process or thread must not end. */
bool seats_resume(struct seats *seats, int seat)
{
    struct seat *own = seat >= 0 ? &seats->all[seat] : NULL;
    int64_t standing = own != NULL ? atomic_load(&own->standing) : STANDING_WORKS;

    if (standing == STANDING_WORKS)
        return false;
    if (standing > STANDING_WORKS &&
        atomic_compare_exchange_strong(&own->standing, &standing, STANDING_WORKS))
        return false;
    while (atomic_load(&own->standing) == STANDING_CALLING)
        sched_yield();
    atomic_store(&own->standing, STANDING_WORKS);
    return true;
}

bool seats_may_ask(int64_t standing, int64_t now)
{
    return standing > STANDING_WORKS && (standing & SINCE_MASK) + SEATS_GRACE_MILLISECONDS <= now;
}

int seats_at_once(int64_t connections)
{
    return (int)(connections / 8) + 1;
}

static int compare(const void *a, const void *b)
{
    const struct seats_candidate *one = a, *two = b;

    return (one->standing > two->standing) - (one->standing < two->standing);
}

void seats_sort(struct seats_candidate *candidates, size_t count)
{
    qsort(candidates, count, sizeof *candidates, compare);
}

/* Lists the connections that may be asked. Returns their number; *asked is how many have been asked
 * and have not answered. */
static int list(const struct seats *seats, struct seats_candidate *candidates, int64_t now,
                int *asked)
{
    int count = 0;

    *asked = 0;
    for (int i = 0; i < seats->count; i++) {
        struct seat *seat = &seats->all[i];
        int64_t standing = atomic_load_explicit(&seat->standing, memory_order_relaxed);
        *asked += standing == STANDING_CALLED;
        if (seats_may_ask(standing, now))
            candidates[count++] = (struct seats_candidate){standing, seat};
    }
    return count;
}

static bool ask(struct seats_candidate *candidate)
{
    struct seat *seat = candidate->connection;

    if (!atomic_compare_exchange_strong(&seat->standing, &candidate->standing, STANDING_CALLING))
        return false;
    syscall(SYS_tkill, atomic_load(&seat->owner), SEATS_SIGNAL);
    atomic_store(&seat->standing, STANDING_CALLED);
    return true;
}

void seats_ask(struct seats *seats, int count, int64_t now)
{
    struct seats_candidate *candidates = malloc((size_t)seats->count * sizeof *candidates);
    int found, asked;

    if (candidates == NULL)
        return;
    found = list(seats, candidates, now, &asked);
    if (asked < count)
        seats_sort(candidates, (size_t)found);
    for (int i = 0; i < found && asked < count; i++)
        asked += ask(&candidates[i]);
    free(candidates);
}
