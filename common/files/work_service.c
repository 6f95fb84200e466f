/* The service that does as much work for a request as its path says: it computes, waits, blocks its
 * thread, or writes to memory. */
#include "common/files/work_service.h"

#include "common/base/ballast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MICROSECONDS_LIMIT 1000000
#define KIBIBYTES_LIMIT    65536

#define SECOND INT64_C(1000000000) /* in nanoseconds */

/* The shortest computation, which takes under a microsecond. */
#define LEAST_ROUNDS 256

/* The deadline of a call that waits for a timer is so long after the timer's end. */
#define LATE_MILLISECONDS 1000

/* The state of a call that waits. */
struct work {
    int timer;
};

/* ---- to compute ---- */

static int64_t thread_time(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

/* Computes random numbers (xorshift). */
static void compute_rounds(int64_t rounds)
{
    uint64_t number = 1;
    volatile uint64_t result;

    for (; rounds > 0; rounds--) {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
    }
    result = number; /* so that the compiler leaves nothing out */
    (void)result;
}

/* Returns how many rounds take half of the time that is left, if `rounds` have taken `time`. No
 * more than four times as many, since a short time may be measured badly. */
static int64_t next_rounds(int64_t rounds, int64_t time, int64_t left)
{
    int64_t next = time > 0 ? left / 2 * rounds / time : LEAST_ROUNDS;

    if (next > 4 * rounds)
        return 4 * rounds;
    return next > LEAST_ROUNDS ? next : LEAST_ROUNDS;
}

/* To read this clock is a system call: it is read some twenty times in all. */
static enum service_progress compute(struct service_call *call, int64_t microseconds)
{
    int64_t now = thread_time(), end = now + microseconds * 1000, rounds = LEAST_ROUNDS;

    while (now < end) {
        int64_t begin = now;
        compute_rounds(rounds);
        now = thread_time();
        rounds = next_rounds(rounds, now - begin, end - now);
    }
    (void)call;
    return SERVICE_RESPONDS;
}

/* ---- to wait ---- */

static struct timespec time_of(int64_t microseconds)
{
    return (struct timespec){microseconds / 1000000, microseconds % 1000000 * 1000};
}

static enum service_progress refuse(struct service_call *call, const char *problem)
{
    response_refuse(call->response, 503, problem);
    return SERVICE_RESPONDS;
}

/* Returns a timer that becomes readable at its end; -1 if there is none. */
static int start_timer(int64_t microseconds)
{
    const struct itimerspec end = {.it_value = time_of(microseconds)};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    if (timer < 0 || timerfd_settime(timer, 0, &end, NULL) == 0)
        return timer;
    close(timer);
    return -1;
}

/* All models wait for the same timer: those that block by poll(), event loops among their other
 * descriptors. Their deadlines in milliseconds would be too coarse. */
static enum service_progress sleep_for(struct service_call *call, int64_t microseconds)
{
    struct work *work;

    if (microseconds == 0)
        return SERVICE_RESPONDS;
    work = malloc(sizeof *work);
    if (work == NULL)
        return refuse(call, "The server has no memory for this request.");
    call->work = work;
    work->timer = start_timer(microseconds);
    if (work->timer < 0)
        return refuse(call, "The server has no timer for this request.");
    call->descriptor = work->timer;
    call->deadline = call->now.milliseconds + microseconds / 1000 + LATE_MILLISECONDS;
    return SERVICE_WAITS;
}

/* ---- to block, and to write to memory ---- */

static enum service_progress block(struct service_call *call, int64_t microseconds)
{
    struct timespec rest = time_of(microseconds);

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR)
        ;
    (void)call;
    return SERVICE_RESPONDS;
}

static enum service_progress touch(struct service_call *call, int64_t kibibytes)
{
    size_t size = (size_t)kibibytes * 1024;
    void *memory;

    if (size == 0)
        return SERVICE_RESPONDS;
    memory = ballast_take(size, false);
    if (memory == NULL)
        return refuse(call, "The server has no memory for this request.");
    munmap(memory, size);
    return SERVICE_RESPONDS;
}

/* ---- the requests ---- */

struct kind {
    struct text path; /* before the amount */
    int64_t limit;    /* of the amount */
    const char *problem;
    enum service_progress (*begin)(struct service_call *call, int64_t amount);
    const char *done; /* the response says so; all are equally long */
};

#define MICROSECONDS_PROBLEM "The path ends in a number of microseconds: from 0 to 1000000."

static const struct kind kinds[] = {
    {TEXT_IS("/cpu/"), MICROSECONDS_LIMIT, MICROSECONDS_PROBLEM, compute, "The server computed."},
    {TEXT_IS("/sleep/"), MICROSECONDS_LIMIT, MICROSECONDS_PROBLEM, sleep_for,
     "A timer has expired."},
    {TEXT_IS("/block/"), MICROSECONDS_LIMIT, MICROSECONDS_PROBLEM, block, "The thread was held."},
    {TEXT_IS("/touch/"), KIBIBYTES_LIMIT,
     "The path ends in a number of kibibytes: from 0 to 65536.", touch, "Pages were modified."},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static const struct kind *find_kind(struct text path)
{
    for (const struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        if (path.length >= kind->path.length &&
            memcmp(path.data, kind->path.data, kind->path.length) == 0)
            return kind;
    return NULL;
}

/* Reads the number at the end of the path. Leading zeros are refused: each amount has one address.
 */
static bool read_amount(const struct kind *kind, struct text path, uint64_t *amount)
{
    struct text digits = {path.data + kind->path.length, path.length - kind->path.length};

    return (digits.length == 1 || (digits.length > 0 && digits.data[0] != '0')) &&
           text_number(digits, amount) && *amount <= (uint64_t)kind->limit;
}

/* Writes what was done, and which thread of the kernel has done it: so a client can tell workers
 * apart. Returns the line, which the thread keeps until its next one of this kind. */
static struct text say_done(const struct kind *kind)
{
    static _Thread_local struct {
        pid_t thread;
        char text[sizeof "The server computed. Thread 1234567.\n"];
    } lines[KINDS], *line;
    pid_t thread = gettid();

    line = &lines[kind - kinds];
    if (line->thread != thread) {
        snprintf(line->text, sizeof line->text, "%s Thread %07u.\n", kind->done,
                 (unsigned)thread % 10000000);
        line->thread = thread;
    }
    return (struct text){line->text, sizeof line->text - 1};
}

static void fill_in_response(const struct kind *kind, struct response *response)
{
    struct text done = say_done(kind);

    response->status = 200;
    response->type = TEXT("text/plain; charset=utf-8");
    response->caching = CACHING_VALIDATED;
    response->body =
        (struct body){.kind = BODY_MEMORY, .memory = done.data, .length = done.length, .file = -1};
}

/* Refuses a request that asks for no work; returns false then. */
static bool check(const struct service_call *call, const struct kind **kind, uint64_t *amount)
{
    const struct request *request = call->request;

    if (response_refuse_scheme(call->response, request, call->context->scheme))
        return false;
    if (request->method != METHOD_GET && request->method != METHOD_HEAD) {
        response_refuse(call->response, 405, "Work is asked for by GET and HEAD.");
        call->response->allow = TEXT("GET, HEAD");
        return false;
    }
    *kind = find_kind(request->path);
    if (*kind == NULL)
        response_refuse(call->response, 404, "The paths are /cpu/N, /sleep/N, /block/N, /touch/N.");
    else if (read_amount(*kind, request->path, amount))
        return true;
    else
        response_refuse(call->response, 400, (*kind)->problem);
    return false;
}

static enum service_progress begin(struct service_call *call)
{
    enum service_progress progress;
    const struct kind *kind;
    uint64_t amount;

    if (call->request->framing != FRAMING_NONE)
        call->keeps_connection = false; /* nobody reads the body */
    if (!check(call, &kind, &amount))
        return SERVICE_RESPONDS;
    fill_in_response(kind, call->response);
    progress = kind->begin(call, (int64_t)amount);
    call->now = clock_now();
    return progress;
}

static enum service_progress step(struct service_call *call)
{
    const struct work *work = call->work;
    uint64_t count;

    if (call->output_pending)
        return SERVICE_NEEDS_FLUSH;
    if (work == NULL)
        return begin(call);
    return read(work->timer, &count, sizeof count) < 0 ? SERVICE_WAITS : SERVICE_RESPONDS;
}

/* The timer has ended, too; step() finds that. */
static enum service_progress expire(struct service_call *call)
{
    (void)call;
    return SERVICE_WAITS;
}

static void end(struct service_call *call)
{
    struct work *work = call->work;

    if (work->timer >= 0)
        close(work->timer);
    free(work);
}

const struct service service_work = {
    .name = "work",
    .descriptors = 1, /* a timer */
    .step = step,
    .expire = expire,
    .end = end,
};
