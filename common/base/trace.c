/* Records what each process and thread does with each connection, in memory that all share. */
#include "common/base/trace.h"

#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Threads that wrote to the same lines of memory would wait for each other. So each takes some
 * places at a time, unless a trace is so small that it needs each of them. */
#define PIECE       16
#define SMALL_TRACE 4096

/* Places of the trace that one thread alone may write to. */
struct places {
    struct trace_record *next, *end;
};

/* What a thread knows of itself, so that a record needs no system call. */
static _Thread_local struct {
    pid_t process, thread;
    struct trace_record *last;
    struct places places, of_child; /* that it has taken; for the child that it is making */
} self;

/* Takes the next places. There may be none. */
static struct places take_places(struct trace *trace)
{
    uint64_t from =
        atomic_fetch_add_explicit(&trace->counts->taken, trace->piece, memory_order_relaxed);
    uint64_t left = from < trace->size ? trace->size - from : 0;
    struct trace_record *next = left > 0 ? &trace->records[from] : NULL;

    return (struct places){next, next + (left < trace->piece ? left : trace->piece)};
}

void trace_expect_child(struct trace *trace)
{
    if (self.of_child.next == NULL)
        self.of_child = take_places(trace);
}

void trace_forget_child(void)
{
    self.of_child = (struct places){0};
}

void trace_forget_thread(void)
{
    self.thread = 0;
    self.last = NULL;
    self.places = (struct places){0};
}

void trace_begin_child(void)
{
    trace_forget_thread();
    self.places = self.of_child;
    trace_forget_child();
}

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static size_t aligned(size_t size)
{
    return (size + 63) / 64 * 64;
}

/* Memory that nobody has written to takes no room. */
bool trace_make(struct trace *trace, uint64_t size, int places)
{
    size_t counts = aligned(sizeof(struct trace_counts));
    size_t numbers = aligned((size_t)places * sizeof(uint32_t));
    char *memory = mmap(NULL, counts + numbers + size * sizeof(struct trace_record),
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    *trace = (struct trace){
        .started = nanoseconds(),
        .size = size,
        .piece = size > SMALL_TRACE ? PIECE : 1,
        .places = places,
        .process = getpid(),
        .counts = (struct trace_counts *)(void *)memory,
        .numbers = (_Atomic uint32_t *)(void *)(memory + counts),
        .records = (struct trace_record *)(void *)(memory + counts + numbers),
    };
    return true;
}

static void know_self(void)
{
    self.process = getpid();
    self.thread = gettid();
}

/* A thread that goes on with the same makes no further record. */
static bool goes_on(enum trace_what what, uint32_t connection)
{
    return self.last != NULL && self.last->what == what && self.last->connection == connection;
}

/* Returns the place of the next record; NULL if there is none. */
static struct trace_record *next_record(struct trace *trace)
{
    if (self.places.next == self.places.end)
        self.places = take_places(trace);
    if (self.places.next < self.places.end)
        return self.places.next++;
    atomic_fetch_add_explicit(&trace->counts->lost, 1, memory_order_relaxed);
    return NULL;
}

void trace_add(struct trace *trace, enum trace_what what, uint32_t connection, uint64_t value)
{
    struct trace_record *record;
    uint64_t now;
    int processor;

    if (goes_on(what, connection))
        return;
    if (self.thread == 0)
        know_self();
    record = next_record(trace);
    now = nanoseconds();
    if (self.last != NULL)
        self.last->duration = now - self.last->time;
    self.last = record;
    if (record == NULL)
        return;
    processor = sched_getcpu();
    *record = (struct trace_record){
        .time = now,
        .value = value,
        .connection = connection,
        .process = self.process,
        .thread = self.thread,
        .processor = (uint16_t)(processor >= 0 ? processor : 0),
        .what = (uint8_t)what,
    };
}

void trace_add_death(struct trace *trace, pid_t process)
{
    struct trace_record *record = next_record(trace);

    if (record != NULL)
        *record = (struct trace_record){
            .time = nanoseconds(),
            .value = 1,
            .process = process,
            .thread = process,
            .what = TRACE_END,
        };
}

uint32_t trace_add_accepted(struct trace *trace, int place, uint16_t port)
{
    uint32_t number =
        atomic_fetch_add_explicit(&trace->counts->connections, 1, memory_order_relaxed) + 1;

    if (place >= 0 && place < trace->places)
        atomic_store_explicit(&trace->numbers[place], number, memory_order_relaxed);
    trace_add(trace, TRACE_ACCEPT, number, port);
    return number;
}

uint64_t trace_count(const struct trace *trace)
{
    uint64_t count = atomic_load(&trace->counts->taken);

    return count < trace->size ? count : trace->size;
}

uint64_t trace_lost(const struct trace *trace)
{
    return atomic_load(&trace->counts->lost);
}

bool trace_is_elsewhere(const struct trace *trace)
{
    if (self.thread == 0)
        know_self();
    return self.thread != trace->process;
}
