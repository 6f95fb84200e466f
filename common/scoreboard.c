/* Counts what a server does, for all its processes and threads. */
#include "common/scoreboard.h"

#include <sys/mman.h>

static size_t aligned(size_t size)
{
    return (size + alignof(struct scoreboard_slot) - 1) & -alignof(struct scoreboard_slot);
}

/* The first seats are on the page of the counters, which each new process touches anyway. So is
 * what children record for the trace, if there is one. */
struct scoreboard_parts scoreboard_make(int slots, int seats, struct scoreboard_room room)
{
    size_t counters = sizeof(struct scoreboard) + (size_t)slots * sizeof(struct scoreboard_slot);
    size_t to_seats = counters + aligned(room.scratches);
    size_t to_limits = aligned(to_seats + (size_t)seats * sizeof(struct seat));
    size_t to_trace = to_limits + aligned(room.limits);
    char *memory = mmap(NULL, to_trace + room.trace, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return (struct scoreboard_parts){0};
    return (struct scoreboard_parts){
        .board = (struct scoreboard *)(void *)memory,
        .slot_count = slots,
        .seat_count = seats,
        .scratches = (struct trace_scratch *)(void *)(memory + counters),
        .seats = (struct seat *)(void *)(memory + to_seats),
        .limits = memory + to_limits,
        .trace = memory + to_trace,
    };
}

static void add(_Atomic uint64_t *counter, uint64_t count)
{
    if (count > 0)
        atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}

void scoreboard_add(struct scoreboard_slot *slot, struct tally *tally)
{
    add(&slot->requests, tally->requests);
    add(&slot->errors, tally->errors);
    add(&slot->bytes, tally->bytes);
    add(&slot->dropped, tally->dropped);
    *tally = (struct tally){0};
}

void scoreboard_count(struct scoreboard *board, int counter, uint64_t count)
{
    add(&board->of_service[counter], count);
}

static void add_alone(_Atomic uint64_t *counter, uint64_t count)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, before + count, memory_order_relaxed);
}

void scoreboard_note_wait(struct scoreboard_slot *slot, int events)
{
    add_alone(&slot->waits, 1);
    add_alone(&slot->events, events > 0 ? (uint64_t)events : 0);
}

struct total scoreboard_total(const struct scoreboard *board, int slots)
{
    struct total total = {0};

    for (int i = 0; i < slots; i++) {
        total.connections += board->slots[i].connections;
        total.requests += board->slots[i].requests;
        total.errors += board->slots[i].errors;
        total.bytes += board->slots[i].bytes;
        total.dropped += board->slots[i].dropped;
    }
    return total;
}

bool scoreboard_stopping(const struct scoreboard *board)
{
    return atomic_load_explicit(&board->stop_deadline, memory_order_relaxed) != 0;
}

void scoreboard_note_peak(struct scoreboard *board, int64_t active)
{
    uint64_t peak = atomic_load_explicit(&board->peak, memory_order_relaxed);

    while (active > (int64_t)peak &&
           !atomic_compare_exchange_weak(&board->peak, &peak, (uint64_t)active))
        ;
}
