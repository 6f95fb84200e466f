/* Opens a ring (io_uring), and passes entries and completions through it. */
#include "common/base/uring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The memory of both queues counts as locked, of which a user may have little. Entries that do not
 * fit are submitted earlier; completions that do not fit wait in the kernel. */
#define ENTRIES     128
#define COMPLETIONS 1024
#define BUFFERS     128 /* while all are in use, a stream is read without one */

/* Output that took longer to make is sent by a call of its own, which takes about a microsecond. */
#define LONG_NANOSECONDS 20000
/* After so long without a submission, nothing more is queued. */
#define QUEUED_NANOSECONDS 50000

/* The kernel works for the ring only while this process calls it, so that completions have an
 * order with signals, and no other process can use the ring. */
#define FLAGS                                                                                      \
    (IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL |                     \
     IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)
/* Completions for which there is no room must not be lost; and a wait must be able to end. */
#define FEATURES (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG)

static int set_up(struct io_uring_params *params)
{
    int file;

    *params = (struct io_uring_params){.flags = FLAGS, .cq_entries = COMPLETIONS};
    file = (int)syscall(SYS_io_uring_setup, ENTRIES, params);
    if (file < 0 || (params->features & FEATURES) == FEATURES)
        return file;
    close(file);
    errno = ENOSYS;
    return -1;
}

/* The rings share one limit of memory, so each is tried while those before it exist. But each
 * worker has a limit of descriptors of its own: EMFILE does not count here. */
bool uring_is_possible(int count)
{
    struct io_uring_params params;
    int file = set_up(&params), problem;
    bool possible = file >= 0 && (count <= 1 || uring_is_possible(count - 1) || errno == EMFILE);

    problem = errno;
    if (file >= 0)
        close(file);
    errno = problem;
    return possible;
}

/* ---- opening ---- */

static bool map(struct uring *ring, const struct io_uring_params *params)
{
    size_t entries = params->sq_off.array + params->sq_entries * sizeof(unsigned);
    size_t completions = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    const int access = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_POPULATE;

    ring->queues_size = entries > completions ? entries : completions;
    ring->entries_size = params->sq_entries * sizeof(struct io_uring_sqe);
    ring->queues = mmap(NULL, ring->queues_size, access, how, ring->file, IORING_OFF_SQ_RING);
    ring->entries = mmap(NULL, ring->entries_size, access, how, ring->file, IORING_OFF_SQES);
    return ring->queues != MAP_FAILED && ring->entries != MAP_FAILED;
}

static unsigned *word(const struct uring *ring, unsigned offset)
{
    return (unsigned *)(void *)((char *)ring->queues + offset);
}

/* Entries are submitted in the order of their places. */
static void find_queues(struct uring *ring, const struct io_uring_params *params)
{
    unsigned *order = word(ring, params->sq_off.array);

    ring->entry_head = word(ring, params->sq_off.head);
    ring->entry_tail = word(ring, params->sq_off.tail);
    ring->entry_count = params->sq_entries;
    ring->completion_head = word(ring, params->cq_off.head);
    ring->completion_tail = word(ring, params->cq_off.tail);
    ring->completion_mask = params->cq_entries - 1;
    ring->completions = (void *)word(ring, params->cq_off.cqes);
    for (unsigned i = 0; i < params->sq_entries; i++)
        order[i] = i;
}

static long set(const struct uring *ring, unsigned what, const void *argument, unsigned count)
{
    return syscall(SYS_io_uring_register, ring->file, what, argument, count);
}

/* The queue of free buffers, and behind its page the buffers. */
#define QUEUE_BYTES 4096
_Static_assert(BUFFERS * sizeof(struct io_uring_buf) <= QUEUE_BYTES, "the queue fits");

static bool make_buffers(struct uring *ring)
{
    struct io_uring_buf_reg buffers = {.ring_entries = BUFFERS, .bgid = URING_BUFFER_GROUP};
    void *memory = mmap(NULL, QUEUE_BYTES + BUFFERS * URING_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    ring->buffers = memory;
    for (unsigned i = 0; i < BUFFERS; i++)
        uring_give_back(ring, i);
    buffers.ring_addr = (uintptr_t)memory;
    return set(ring, IORING_REGISTER_PBUF_RING, &buffers, 1) == 0;
}

#define OPERATION(name)                                                                            \
    {                                                                                              \
        .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_##name                            \
    }

/* A filter of system calls does not see what a ring does: so the ring itself is restricted, for
 * ever. It opens nothing, connects nothing, and cannot be changed. */
static bool restrict_to(const struct uring *ring, bool streams)
{
    const struct io_uring_restriction all[] = {
        {.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
         .sqe_flags = IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS},
        OPERATION(POLL_ADD),
        OPERATION(ASYNC_CANCEL),
        /* for streams */
        OPERATION(RECV),
        OPERATION(SEND),
    };

    return set(ring, IORING_REGISTER_RESTRICTIONS, all, streams ? 5 : 3) == 0;
}

#ifdef ESCAPE_PATH
struct uring *uring_to_escape;
#endif

bool uring_open(struct uring *ring, bool streams)
{
    struct io_uring_params params;
    int problem;

#ifdef ESCAPE_PATH
    uring_to_escape = ring;
#endif
    *ring = (struct uring){.queues = MAP_FAILED, .entries = MAP_FAILED};
    ring->file = set_up(&params);
    if (ring->file < 0)
        return false;
    if (map(ring, &params)) {
        find_queues(ring, &params);
        if ((!streams || make_buffers(ring)) && restrict_to(ring, streams) &&
            set(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0) == 0)
            return true;
    }
    problem = errno;
    uring_close(ring);
    errno = problem;
    return false;
}

void uring_close(struct uring *ring)
{
    if (ring->file >= 0)
        close(ring->file);
    if (ring->queues != MAP_FAILED)
        munmap(ring->queues, ring->queues_size);
    if (ring->entries != MAP_FAILED)
        munmap(ring->entries, ring->entries_size);
    if (ring->buffers != NULL)
        munmap(ring->buffers, QUEUE_BYTES + BUFFERS * URING_BUFFER_BYTES);
    ring->file = -1;
}

/* ---- entries and completions ---- */

bool uring_is_queued(const struct uring *ring, unsigned position)
{
    return (int)(position - __atomic_load_n(ring->entry_head, __ATOMIC_ACQUIRE)) >= 0;
}

static unsigned queued(const struct uring *ring)
{
    return ring->tail - __atomic_load_n(ring->entry_head, __ATOMIC_ACQUIRE);
}

bool uring_has_entries(const struct uring *ring)
{
    return queued(ring) > 0;
}

static int64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The result of the call says little: the queues tell what has happened. */
static void enter(struct uring *ring, unsigned least, const struct __kernel_timespec *time)
{
    const struct io_uring_getevents_arg argument = {.ts = (uintptr_t)time};

    __atomic_store_n(ring->entry_tail, ring->tail, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, ring->file, queued(ring), least,
            IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
}

void uring_submit(struct uring *ring)
{
    if (queued(ring) > 0)
        enter(ring, 0, NULL);
}

static struct io_uring_sqe *entry_at(const struct uring *ring, unsigned position)
{
    return (struct io_uring_sqe *)ring->entries + (position & (ring->entry_count - 1));
}

void uring_settle(struct uring *ring, unsigned position, uint64_t owner, uint64_t mask)
{
    if (uring_is_queued(ring, position))
        uring_submit(ring);
    for (; uring_is_queued(ring, position); position--) {
        struct io_uring_sqe *entry = entry_at(ring, position);
        uint64_t data = entry->user_data;
        if ((data & ~mask) == owner)
            *entry = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .fd = -1, .user_data = data};
    }
}

bool uring_may_queue(struct uring *ring)
{
    int64_t now = nanoseconds();
    bool is_late =
        now - ring->last_made > LONG_NANOSECONDS || now - ring->last_submitted > QUEUED_NANOSECONDS;

    ring->last_made = now;
    if (!is_late)
        return true;
    uring_submit(ring);
    ring->last_submitted = now;
    return false;
}

void uring_is_idle(struct uring *ring)
{
    ring->idle++;
}

void uring_wait(struct uring *ring, int milliseconds)
{
    bool short_wait =
        ring->idle > 0 && (milliseconds < 0 || milliseconds > URING_IDLE_MILLISECONDS);
    int most = short_wait ? URING_IDLE_MILLISECONDS : milliseconds;
    const struct __kernel_timespec time = {most / 1000, most % 1000 * 1000000LL};

    enter(ring, most != 0 ? ring->idle + 1 : 0, most > 0 ? &time : NULL);
    ring->idle = 0;
    ring->last_made = ring->last_submitted = nanoseconds();
}

struct io_uring_sqe *uring_entry(struct uring *ring)
{
    struct io_uring_sqe *entry;

    if (queued(ring) == ring->entry_count)
        uring_submit(ring);
    if (queued(ring) == ring->entry_count)
        return NULL;
    entry = entry_at(ring, ring->tail++);
    memset(entry, 0, sizeof *entry);
    return entry;
}

unsigned uring_position(const struct uring *ring)
{
    return ring->tail - 1;
}

bool uring_take(struct uring *ring, struct io_uring_cqe *completion)
{
    unsigned head = *ring->completion_head;

    if (head == __atomic_load_n(ring->completion_tail, __ATOMIC_ACQUIRE))
        return false;
    *completion = ring->completions[head & ring->completion_mask];
    __atomic_store_n(ring->completion_head, head + 1, __ATOMIC_RELEASE);
    return true;
}

/* ---- buffers ---- */

char *uring_buffer(const struct uring *ring, unsigned number)
{
    return (char *)ring->buffers + QUEUE_BYTES + number * URING_BUFFER_BYTES;
}

void uring_give_back(struct uring *ring, unsigned number)
{
    struct io_uring_buf *buffer = &ring->buffers->bufs[ring->buffer_tail & (BUFFERS - 1)];

    buffer->addr = (uintptr_t)uring_buffer(ring, number);
    buffer->len = URING_BUFFER_BYTES;
    buffer->bid = (unsigned short)number;
    __atomic_store_n(&ring->buffers->tail, ++ring->buffer_tail, __ATOMIC_RELEASE);
}
