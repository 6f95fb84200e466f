/* Records what each process and thread does with each connection, in memory that all share. */
#include "common/base/trace.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* What a thread knows of itself, so that a record needs no system call. */
static _Thread_local struct {
    pid_t process, thread;
    struct trace_record *last;
} self;

/* A new process is a copy of the thread that forked. */
static void forget_self(void)
{
    self.thread = 0;
    self.last = NULL;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Memory that nobody has written to takes no room. */
struct trace *trace_make(uint64_t size, int places)
{
    size_t head = sizeof(struct trace), numbers = (size_t)places * sizeof(uint32_t);
    size_t before = (head + numbers + 63) / 64 * 64;
    struct trace *trace;

    if (size > (SIZE_MAX - before) / sizeof(struct trace_record)) {
        errno = ENOMEM;
        return NULL;
    }
    trace = mmap(NULL, before + size * sizeof(struct trace_record), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (trace == MAP_FAILED)
        return NULL;
    trace->started = nanoseconds();
    trace->size = size;
    trace->places = places;
    trace->process = getpid();
    trace->numbers = (_Atomic uint32_t *)(void *)((char *)trace + head);
    trace->records = (struct trace_record *)(void *)((char *)trace + before);
    errno = pthread_atfork(NULL, NULL, forget_self);
    return errno == 0 ? trace : NULL;
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

void trace_add(struct trace *trace, enum trace_what what, uint32_t connection, uint64_t value)
{
    uint64_t index, now;
    struct trace_record *record;
    int processor;

    if (goes_on(what, connection))
        return;
    if (self.thread == 0)
        know_self();
    index = atomic_fetch_add_explicit(&trace->count, 1, memory_order_relaxed);
    now = nanoseconds();
    if (self.last != NULL)
        self.last->duration = now - self.last->time;
    self.last = NULL;
    if (index >= trace->size)
        return;
    record = &trace->records[index];
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
    self.last = record;
}

uint32_t trace_add_accepted(struct trace *trace, int place, uint16_t port)
{
    uint32_t number = atomic_fetch_add_explicit(&trace->connections, 1, memory_order_relaxed) + 1;

    if (place >= 0 && place < trace->places)
        atomic_store_explicit(&trace->numbers[place], number, memory_order_relaxed);
    trace_add(trace, TRACE_ACCEPT, number, port);
    return number;
}

uint64_t trace_lost(const struct trace *trace)
{
    uint64_t count = atomic_load(&trace->count);

    return count > trace->size ? count - trace->size : 0;
}

bool trace_is_elsewhere(const struct trace *trace)
{
    if (self.thread == 0)
        know_self();
    return self.thread != trace->process;
}
