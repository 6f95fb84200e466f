/* Records what each process and thread does with each connection, in memory that all share. */
#ifndef COMMON_TRACE_H
#define COMMON_TRACE_H

#include "common/base/ticks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum trace_what {
    TRACE_NOTHING, /* a record that was not finished */
    TRACE_START,   /* a process or thread begins; the value is the number of its worker, from 1 */
    TRACE_END,     /* it ends; the value is 1 if its parent says so, since it died */
    TRACE_ACCEPT,  /* takes a connection; the value is the port of its client */
    TRACE_HAND_OVER,
    TRACE_BEGIN,
    TRACE_WAIT,
    TRACE_READ,
    TRACE_RESPOND,
    TRACE_WRITE, /* the value is the status of the response */
    TRACE_CLOSE, /* the value is the number of bytes that were sent */
};

/* A thread does something for a connection, from `time` until its next record. */
struct trace_record {
    uint64_t time, duration; /* in ticks; see trace_read() */
    uint64_t value;
    uint32_t connection; /* from 1; 0: none */
    pid_t process, thread;
    uint16_t processor;
    uint8_t what;
};

/* The counts, which all processes of the server may change. */
struct trace_counts {
    _Atomic uint64_t taken; /* places that threads have taken; perhaps more than there are */
    _Atomic uint64_t lost;  /* records that did not fit */
    _Atomic uint32_t connections;
};

/* Places of the trace that one thread alone may write to. */
struct trace_places {
    struct trace_record *next, *end;
};

/* Room for the records of a child that lives for one request. It lies on a page that the child
 * touches anyway: to map a page of the records would cost the child 2 us. Its parent empties it. */
#define TRACE_SCRATCHES      6
#define TRACE_SCRATCH_PLACES 8

enum trace_scratch_state { TRACE_SCRATCH_FREE, TRACE_SCRATCH_TAKEN, TRACE_SCRATCH_LEFT };

struct trace_scratch {
    _Atomic int state;
    pid_t process; /* that has taken it, or 0: it is not known yet */
    struct trace_record records[TRACE_SCRATCH_PLACES];
};

/* The identity of a thread, kept so that a record needs no system call. */
struct trace_task {
    pid_t process, thread;
    struct trace_record *last;
    struct trace_places places;    /* that it has taken */
    int taken;                     /* how often it has */
    struct trace_scratch *scratch; /* of this child; or NULL */
};

/* Each process has a copy. What it points to is shared: a worker that was taken over may have
 * written anything there. */
struct trace {
    struct ticks started;
    double scale;                   /* nanoseconds of a tick, once it is finished */
    uint64_t size;                  /* of `records` */
    int seats;                      /* of `numbers` */
    pid_t process;                  /* that made it */
    struct trace_task maker;        /* the thread that made it */
    struct trace_scratch *of_child; /* for the child that is being made; or NULL */
    struct trace_counts *counts;
    struct trace_scratch *scratches;
    struct trace_record *records;
    _Atomic uint32_t *numbers; /* of the connection in each seat */
};

/* Returns the size of the memory for so many records, of a server with so many seats for
 * connections. What nobody has written to takes no room. */
size_t trace_size(uint64_t size, int seats);
/* Makes a trace in memory that is shared, aligned to 64 bytes, and zero; `scratches` is an array of
 * TRACE_SCRATCHES. The trace may not move. */
void trace_make(struct trace *trace, struct trace_scratch *scratches, void *memory, uint64_t size,
                int seats);

/* Adds a record of this thread, which ends the last one of this thread. */
void trace_add(struct trace *trace, enum trace_what what, uint32_t connection, uint64_t value);
/* Gives the connection in a seat the next number, and notes that this thread accepted it. */
uint32_t trace_add_accepted(struct trace *trace, int seat, uint16_t port);
/* Notes that a process has died without saying so. */
void trace_add_death(struct trace *trace, pid_t process);
/* Returns the number of places that may hold a record, and of records that did not fit. */
uint64_t trace_count(const struct trace *trace);
uint64_t trace_lost(const struct trace *trace);
/* Called once all has been recorded, before the records are read. */
void trace_finish(struct trace *trace);
/* Returns a copy of a record, whose times are nanoseconds since the start. The records themselves
 * stay in ticks: a process that has not ended in time may still write some. */
struct trace_record trace_read(const struct trace *trace, uint64_t index);
/* Looks for scratch room for the child that this thread is going to fork. There may be none. */
void trace_expect_child(struct trace *trace);
/* Called by the parent, once the child is made. */
void trace_made_child(struct trace *trace, pid_t child);
/* Called first in a child of fork(), whose thread-local variables are a copy of its maker's. A
 * handler of pthread_atfork() would do, but writes to a page of the C library, which is copied. */
void trace_begin_child(struct trace *trace);
void trace_forget_thread(void);
/* Returns true in a thread or process that was made after the trace. */
bool trace_is_elsewhere(const struct trace *trace);

/* All of these do nothing without a trace. */

/* Called first in a child that clone() made: its thread-local variables are a copy of another's, or
 * were another's. Threads need not. */
static inline void trace_begin_clone(const struct trace *trace)
{
    if (trace != NULL)
        trace_forget_thread();
}

static inline void trace_note(struct trace *trace, enum trace_what what, uint32_t connection,
                              uint64_t value)
{
    if (trace != NULL)
        trace_add(trace, what, connection, value);
}

static inline void trace_died(struct trace *trace, pid_t process)
{
    if (trace != NULL)
        trace_add_death(trace, process);
}

static inline uint32_t trace_accepted(struct trace *trace, int seat, uint16_t port)
{
    return trace != NULL ? trace_add_accepted(trace, seat, port) : 0;
}

/* Returns the number of the connection in a seat. */
static inline uint32_t trace_number(const struct trace *trace, int seat)
{
    return trace != NULL && seat >= 0 && seat < trace->seats
               ? atomic_load_explicit(&trace->numbers[seat], memory_order_relaxed)
               : 0;
}

#endif
