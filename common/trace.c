/* Records what each process and thread does with each connection, in memory that all share. */
#include "common/trace.h"

#include "common/base/memory_limit.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* Threads that write to the same cache lines wait for each other. So each takes several places at a
 * time, and more each time: a worker process has to map each page that it writes to. In a small
 * trace each takes one place at a time, since no place may be wasted. */
#define PIECE_LEAST 16
#define PIECE_MOST  256
#define SMALL_TRACE 4096

#define TOUCHED_MOST ((uintptr_t)64 << 20) /* bytes */

/* The state of this thread. That of the thread that makes the trace is in struct trace instead:
 * after a fork, to write to a thread-local variable would copy a page that nothing else of the
 * parent writes to. */
static _Thread_local struct trace_task own;
static _Thread_local struct trace_task *maker; /* in the thread that made the trace */

static struct trace_task *self(void)
{
    return maker != NULL ? maker : &own;
}

/* Takes the next places. There may be none. */
static struct trace_places take_places(struct trace *trace, struct trace_task *task)
{
    uint64_t piece = trace->size > SMALL_TRACE ? (uint64_t)PIECE_LEAST << task->taken : 1;
    uint64_t from = atomic_fetch_add_explicit(&trace->counts->taken, piece, memory_order_relaxed);
    uint64_t left = from < trace->size ? trace->size - from : 0;
    struct trace_record *next = left > 0 ? &trace->records[from] : NULL;

    if (piece < PIECE_MOST)
        task->taken++;
    return (struct trace_places){next, next + (left < piece ? left : piece)};
}

/* Returns the place of the next record; NULL if there is none. */
static struct trace_record *next_record(struct trace *trace, struct trace_task *task)
{
    if (task->places.next == task->places.end)
        task->places = take_places(trace, task);
    if (task->places.next < task->places.end)
        return task->places.next++;
    atomic_fetch_add_explicit(&trace->counts->lost, 1, memory_order_relaxed);
    return NULL;
}

/* The process that has left it may have written anything there. */
static void empty_scratch(struct trace *trace, struct trace_scratch *scratch)
{
    for (int i = 0; i < TRACE_SCRATCH_PLACES; i++) {
        struct trace_record *record =
            scratch->records[i].what != TRACE_NOTHING ? next_record(trace, self()) : NULL;

        if (record != NULL)
            *record = scratch->records[i];
        scratch->records[i].what = TRACE_NOTHING;
    }
    scratch->process = 0;
    atomic_store_explicit(&scratch->state, TRACE_SCRATCH_FREE, memory_order_relaxed);
}

/* Returns free scratch room, or NULL. Empties what others have left. */
static struct trace_scratch *find_scratch(struct trace *trace)
{
    struct trace_scratch *found = NULL;

    for (int i = 0; i < TRACE_SCRATCHES; i++) {
        struct trace_scratch *scratch = &trace->scratches[i];
        int state = atomic_load_explicit(&scratch->state, memory_order_acquire);

        if (state == TRACE_SCRATCH_LEFT)
            empty_scratch(trace, scratch);
        if (state != TRACE_SCRATCH_TAKEN)
            found = scratch;
    }
    return found;
}

void trace_expect_child(struct trace *trace)
{
    trace->of_child = find_scratch(trace);
}

void trace_made_child(struct trace *trace, pid_t child)
{
    int unused = TRACE_SCRATCH_FREE;

    if (trace->of_child == NULL)
        return;
    trace->of_child->process = child;
    /* The child may have ended already. */
    atomic_compare_exchange_strong(&trace->of_child->state, &unused, TRACE_SCRATCH_TAKEN);
}

void trace_forget_thread(void)
{
    maker = NULL;
    own = (struct trace_task){0};
}

void trace_begin_child(struct trace *trace)
{
    trace_forget_thread();
    own.process = own.thread = getpid();
    own.scratch = trace->of_child;
    if (own.scratch != NULL)
        own.places = (struct trace_places){own.scratch->records,
                                           own.scratch->records + TRACE_SCRATCH_PLACES};
}

static void leave_scratch(struct trace_task *task)
{
    if (task->scratch != NULL)
        atomic_store_explicit(&task->scratch->state, TRACE_SCRATCH_LEFT, memory_order_release);
}

static size_t aligned(size_t size)
{
    return (size + 63) / 64 * 64;
}

static size_t size_of_counts(void)
{
    return aligned(sizeof(struct trace_counts));
}

static size_t size_of_numbers(int seats)
{
    return aligned((size_t)seats * sizeof(uint32_t));
}

size_t trace_size(uint64_t size, int seats)
{
    return size_of_counts() + size_of_numbers(seats) + size * sizeof(struct trace_record);
}

/* Touches the first records: memory that nobody has used yet costs a virtual machine up to 20 us a
 * page, which requests would pay. Where memory is limited they do. */
static void touch(const struct trace *trace)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)trace->records + page - 1) & -page;
    uintptr_t end = (uintptr_t)(trace->records + trace->size) & -page;

    if (end > begin + TOUCHED_MOST)
        end = begin + TOUCHED_MOST;
    if (end > begin && memory_limit() == UINT64_MAX)
        madvise((void *)begin, end - begin, MADV_POPULATE_WRITE); /* Linux 5.14 */
}

void trace_make(struct trace *trace, struct trace_scratch *scratches, void *memory, uint64_t size,
                int seats)
{
    char *numbers = (char *)memory + size_of_counts();

    *trace = (struct trace){
        .started = ticks_start(),
        .size = size,
        .seats = seats,
        .process = getpid(),
        .counts = memory,
        .scratches = scratches,
        .numbers = (_Atomic uint32_t *)(void *)numbers,
        .records = (struct trace_record *)(void *)(numbers + size_of_numbers(seats)),
    };
    maker = &trace->maker;
    touch(trace);
}

static void know_self(struct trace_task *task)
{
    task->process = getpid();
    task->thread = gettid();
}

/* A duration of 0 would say that the record has no end. */
static void end_last(struct trace_record *last, uint64_t now)
{
    last->duration = now > last->time ? now - last->time : 1;
}

/* Returns true if the thread still does what its last record says: there is no new one then. */
static bool goes_on(const struct trace_task *task, enum trace_what what, uint32_t connection)
{
    return task->last != NULL && task->last->what == what && task->last->connection == connection;
}

void trace_add(struct trace *trace, enum trace_what what, uint32_t connection, uint64_t value)
{
    struct trace_task *task = self();
    struct trace_record *record;
    uint64_t now;
    int processor;

    if (goes_on(task, what, connection))
        return;
    if (task->thread == 0)
        know_self(task);
    record = next_record(trace, task);
    now = ticks_now(&trace->started);
    if (task->last != NULL)
        end_last(task->last, now);
    task->last = record;
    if (record == NULL)
        return;
    processor = sched_getcpu();
    *record = (struct trace_record){
        .time = now,
        .value = value,
        .connection = connection,
        .process = task->process,
        .thread = task->thread,
        .processor = (uint16_t)(processor >= 0 ? processor : 0),
        .what = (uint8_t)what,
    };
    if (what == TRACE_END)
        leave_scratch(task);
}

void trace_add_death(struct trace *trace, pid_t process)
{
    struct trace_record *record;

    for (int i = 0; i < TRACE_SCRATCHES; i++)
        if (trace->scratches[i].process == process)
            empty_scratch(trace, &trace->scratches[i]);
    record = next_record(trace, self());
    if (record != NULL)
        *record = (struct trace_record){
            .time = ticks_now(&trace->started),
            .value = 1,
            .process = process,
            .thread = process,
            .what = TRACE_END,
        };
}

uint32_t trace_add_accepted(struct trace *trace, int seat, uint16_t port)
{
    uint32_t number =
        atomic_fetch_add_explicit(&trace->counts->connections, 1, memory_order_relaxed) + 1;

    if (seat >= 0 && seat < trace->seats)
        atomic_store_explicit(&trace->numbers[seat], number, memory_order_relaxed);
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
    struct trace_task *task = self();

    if (task->thread == 0)
        know_self(task);
    return task->thread != trace->process;
}

void trace_finish(struct trace *trace)
{
    trace->scale = ticks_nanoseconds(&trace->started);
    for (int i = 0; i < TRACE_SCRATCHES; i++)
        empty_scratch(trace, &trace->scratches[i]);
}

static uint64_t scaled(const struct trace *trace, uint64_t ticks)
{
    double nanoseconds = (double)ticks * trace->scale;

    return nanoseconds < (double)INT64_MAX ? (uint64_t)nanoseconds : 0;
}

static uint64_t at_least(uint64_t least, uint64_t number)
{
    return number > least ? number : least;
}

/* A place that was taken and never filled has the time 0. */
struct trace_record trace_read(const struct trace *trace, uint64_t index)
{
    struct trace_record record = trace->records[index];
    uint64_t started = trace->started.ticks;

    record.time = record.time > started ? scaled(trace, record.time - started) : 0;
    record.duration = at_least(record.duration > 0, scaled(trace, record.duration));
    return record;
}
