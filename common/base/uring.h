/* A ring (io_uring) by which a process submits operations to the kernel and gets their results,
 * many with each system call. It is restricted to operations on sockets that are open. */
#ifndef COMMON_BASE_URING_H
#define COMMON_BASE_URING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef ESCAPE_PATH
/* For tests/sandbox_escape.c: the ring of this process. */
extern struct uring *uring_to_escape;
#endif

struct uring {
    int file; /* -1: none */
    void *queues, *entries;
    size_t queues_size, entries_size;
    /* The queue of entries, which the kernel empties. */
    unsigned *entry_head, *entry_tail;
    unsigned entry_count;
    unsigned tail; /* entries below this one are filled in */
    unsigned idle; /* so many of these end at once, and a wait does not end for them */
    /* When something to send was made last, and when entries were submitted last, in nanoseconds.
     * The end of a wait counts as both. */
    int64_t last_made, last_submitted;
    /* The queue of completions, which this process empties. */
    unsigned *completion_head, *completion_tail;
    unsigned completion_mask;
    struct io_uring_cqe *completions;
    /* The buffers into which the kernel receives; NULL: none. */
    struct io_uring_buf_ring *buffers;
    unsigned short buffer_tail;
};

/* The user data of a completion that nobody waits for. */
#define URING_NOBODY UINT64_MAX

/* Returns true if so many processes of this user may have a ring each; else false, with errno set.
 */
bool uring_is_possible(int count);

/* Opens a ring. With `streams` it can receive and send; else it can only wait for descriptors.
 * False, with errno set, if it fails. */
bool uring_open(struct uring *ring, bool streams);
void uring_close(struct uring *ring);

/* Returns an empty entry to fill in. It is submitted with the next call of the kernel. NULL if the
 * kernel takes none, since it has no memory. */
struct io_uring_sqe *uring_entry(struct uring *ring);
/* The position of the entry that uring_entry() returned last; and true if the kernel has not taken
 * the entry at this position yet. */
unsigned uring_position(const struct uring *ring);
bool uring_is_queued(const struct uring *ring, unsigned position);
/* Returns true if there are entries to submit. */
bool uring_has_entries(const struct uring *ring);
/* Submits all entries. */
void uring_submit(struct uring *ring);
/* Has the kernel take the entries of an owner, the last of which is at this position, before what
 * they name is freed or closed. Their user data is `owner` and some bits of `mask`. If the kernel
 * cannot take them, they name nothing any more, and move nothing. */
void uring_settle(struct uring *ring, unsigned position, uint64_t owner, uint64_t mask);
/* Called when something to send has been made. Returns true if it may be queued and submitted
 * together with others. Submits all entries and returns false if it took long to make: the next may
 * take as long, and this client would wait for it. */
bool uring_may_queue(struct uring *ring);
/* Says that the last entry ends at once and leaves nothing to do: a wait goes on after it, for
 * URING_IDLE_MILLISECONDS at most. */
#define URING_IDLE_MILLISECONDS 10
void uring_is_idle(struct uring *ring);
/* Submits all entries, and waits for a completion so many milliseconds; -1: for ever. Completions
 * come only in this call and in uring_submit(). All of them must be taken before the next wait. */
void uring_wait(struct uring *ring, int milliseconds);
/* Takes the next completion; false if there is none. */
bool uring_take(struct uring *ring, struct io_uring_cqe *completion);

/* The buffers of a ring that can receive. A buffer whose number a completion names belongs to this
 * process until it is given back. */
#define URING_BUFFER_GROUP 0
#define URING_BUFFER_BYTES 2048
char *uring_buffer(const struct uring *ring, unsigned number);
void uring_give_back(struct uring *ring, unsigned number);

#endif
