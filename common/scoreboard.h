/* The counters of a server, in memory that all its processes and threads share. */
#ifndef COMMON_SCOREBOARD_H
#define COMMON_SCOREBOARD_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The counters of one worker; without workers, one slot counts for all connections. Each slot has
 * its own cache lines. */
struct scoreboard_slot {
    alignas(64) _Atomic uint64_t connections; /* accepted */
    _Atomic uint64_t requests;
    _Atomic uint64_t errors;    /* responses of 400 and above, and responses cut short */
    _Atomic uint64_t bytes;     /* sent */
    _Atomic uint64_t dropped;   /* datagrams without a response */
    _Atomic uint64_t waits;     /* of its event loop */
    _Atomic uint64_t events;    /* that these waits have brought */
    _Atomic int64_t active;     /* open connections of the worker */
    _Atomic int64_t persistent; /* those that an event loop keeps open after a request */
    _Atomic bool listening;     /* an event loop has a permit to listen; see listen_permits.h */
    _Atomic int seat;           /* of the connection that was assigned */
    _Atomic bool assigned;      /* a connection was passed to the worker and has not ended */
};

/* The seat of one connection. It stays where it is while processes come and go. */
struct seat {
    _Atomic int64_t standing; /* how the connection waits; see seats.h */
    _Atomic int owner;        /* the process, thread or worker that has it; 0: it is free */
    _Atomic uint32_t address; /* where its client's address is counted; 0: nowhere */
};

/* The counters whose meaning the service knows: struct service names them. */
#define SCOREBOARD_SERVICE_COUNTERS 5

struct trace_scratch;

struct scoreboard {
    _Atomic int64_t active;  /* open connections */
    _Atomic uint64_t peak;   /* the most connections at once */
    _Atomic uint64_t made;   /* processes or threads made so far */
    _Atomic int64_t workers; /* worker processes or threads that have not ended */
    /* When all connections must have ended, in monotonic milliseconds; 0: no stop was requested. */
    _Atomic int64_t stop_deadline;
    _Atomic bool acceptor_waits;  /* the accepting process waits for a connection to end */
    _Atomic bool refusing;        /* at a stop, new clients are refused, if the kernel allows it */
    _Atomic bool no_late_clients; /* the kernel cannot: nobody waits for clients that connect */
    _Atomic bool silent_client;   /* the kernel holds a client back that has said nothing yet */
    _Atomic bool hop_limited;     /* the listeners refuse by the hop limit */
    _Atomic unsigned reloads;     /* how often SIGHUP has come */
    _Atomic bool handed_over;     /* another server accepts all new clients */
    _Atomic bool drained;         /* at a stop, no client has come for long enough */
    _Atomic int64_t scarce_seconds; /* the second in which warnings are counted */
    _Atomic int scarce_warnings;
    _Atomic pid_t template_child; /* the last one that the template has made */
    _Atomic int permits;          /* to listen, given to event loops: see listen_permits.h */
    _Atomic int free_seat;        /* no seat below this one is free, most probably */
    _Atomic uint64_t gave_way;    /* connections that were ended since others needed their seats */
    _Atomic uint64_t refused;     /* clients whose address had too many connections */
    alignas(64) _Atomic uint64_t of_service[SCOREBOARD_SERVICE_COUNTERS];
    struct scoreboard_slot slots[];
};

/* Pointers to the parts of a scoreboard. Each process has its own copy: a process that is taken
 * over cannot change that of others. */
struct scoreboard_parts {
    struct scoreboard *board;
    int slot_count, seat_count;
    struct trace_scratch *scratches; /* see trace.h */
    struct seat *seats;
    void *limits; /* see address_limit.h */
    void *trace;
};

/* Counts of a connection that are not yet added to the scoreboard. */
struct tally {
    uint64_t requests;
    uint64_t errors;
    uint64_t bytes;
    uint64_t dropped;
};

/* Bytes for others in the memory of the scoreboard: a fork costs time for each mapping. */
struct scoreboard_room {
    size_t scratches, limits, trace;
};

/* Makes the counters, and room for others, aligned as a slot. Without memory there is no board, and
 * errno is set. */
struct scoreboard_parts scoreboard_make(int slots, int seats, struct scoreboard_room room);
/* Moves the counts from the tally to the slot. */
void scoreboard_add(struct scoreboard_slot *slot, struct tally *tally);

/* Adds to a counter of the service. */
void scoreboard_count(struct scoreboard *board, int counter, uint64_t count);

/* Counts a wait of an event loop, which alone counts in its slot, and the events that it brought.
 */
void scoreboard_note_wait(struct scoreboard_slot *slot, int events);

/* The sum of all slots. */
struct total {
    uint64_t connections;
    uint64_t requests;
    uint64_t errors;
    uint64_t bytes;
    uint64_t dropped;
};

struct total scoreboard_total(const struct scoreboard *board, int slots);

/* Raises the peak to `active` if it is lower. */
void scoreboard_note_peak(struct scoreboard *board, int64_t active);

/* Returns true once a stop was requested. */
bool scoreboard_stopping(const struct scoreboard *board);

#endif
