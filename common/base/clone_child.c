/* Makes children by clone(): finds a stack and thread-local variables for those that share memory.
 */
#include "common/base/clone_child.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A stack that is given back keeps so much at either end. At the upper end, this lets the next
 * child begin without page faults; at the lower end, it makes up for the thread-local variables
 * above the stack, which shift its ends by less. */
#define STACK_KEPT       (16 * 1024) /* or a page, if that is larger */
#define RSEQ_LEAST_BYTES 32          /* the kernel takes no fewer */

/* The stack and the variables that a child runs on. In shared memory they are those of a thread
 * that has ended: the C library has prepared them, and does not know that it has ended. */
struct place {
    _Atomic(_Atomic pid_t *) id; /* of the child; the kernel sets it to 0 when the child ends */
    char *stack;                 /* its upper end */
    sigset_t signals;            /* which the child blocks */
    void *variables, *robust_list;
    size_t robust_list_size;
    /* The child's work. */
    void (*function)(const void *argument);
    _Alignas(max_align_t) char argument[CLONE_CHILD_ARGUMENT];
};

static struct place own; /* of this thread: a child whose memory is a copy runs on the copy */
static struct place *places;
static int place_count, place_limit, last_place, flags;
static size_t stack_size, page_size, stack_kept;
static _Atomic pid_t *noted;

static void note_thread(struct place *place)
{
    _Atomic pid_t *id = NULL;

    prctl(PR_GET_TID_ADDRESS, &id);
    syscall(SYS_get_robust_list, 0, &place->robust_list, &place->robust_list_size);
    place->variables = __builtin_thread_pointer();
    atomic_store(&place->id, id);
}

/* A child may be counted as ended a moment before its place is free: so there are more places. */
bool clone_child_open(int clone_flags, int limit, size_t stack_bytes)
{
    flags = clone_flags;
    note_thread(&own);
    if (atomic_load(&own.id) == NULL) {
        errno = ENOSYS;
        return false;
    }
    if (!(flags & CLONE_VM))
        return true;
    place_limit = 2 * limit;
    stack_size = stack_bytes;
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    stack_kept = page_size > STACK_KEPT ? page_size : STACK_KEPT;
    places = calloc((size_t)place_limit, sizeof *places);
    return places != NULL;
}

static void *leave_place(void *argument)
{
    struct place *place = argument;

    place->stack = (char *)((uintptr_t)__builtin_frame_address(0) / 64 * 64) - 1024;
    note_thread(place);
    syscall(SYS_exit, 0); /* without the C library */
    return NULL;
}

static bool is_free(const struct place *place)
{
    _Atomic pid_t *id = atomic_load(&place->id);

    return id != NULL && atomic_load(id) == 0;
}

static bool make_place(struct place *place)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_size);
    errno = pthread_create(&thread, &attributes, leave_place, place);
    pthread_attr_destroy(&attributes);
    if (errno != 0)
        return false;
    while (!is_free(place))
        sched_yield();
    return true;
}

/* Returns a place that nobody has; NULL, with errno set, if there is none. */
static struct place *find_place(void)
{
    for (int i = 0; i < place_count; i++) {
        if (is_free(&places[last_place]))
            return &places[last_place];
        last_place = (last_place + 1) % place_count;
    }
    errno = EAGAIN;
    if (place_count == place_limit || !make_place(&places[place_count]))
        return NULL;
    return &places[place_count++];
}

/* __rseq_size is what this kernel uses of it. */
static unsigned rseq_bytes(void)
{
    return __rseq_size > RSEQ_LEAST_BYTES ? __rseq_size : RSEQ_LEAST_BYTES;
}

/* Does first what the C library does in a process or thread that it has made: the children are to
 * be compared with those. */
static void work(struct place *place)
{
    syscall(SYS_set_robust_list, place->robust_list, place->robust_list_size);
    if ((flags & CLONE_VM) && __rseq_size > 0)
        syscall(SYS_rseq, (char *)place->variables + __rseq_offset, rseq_bytes(), 0, RSEQ_SIG);
    if (flags & CLONE_VM)
        pthread_sigmask(SIG_SETMASK, &place->signals, NULL);
    place->function(place->argument);
}

/* Gives back what a long request needed of the stack, as the C library does when a thread ends. */
static void leave_stack(const struct place *place)
{
    char *end = (char *)((uintptr_t)place->stack / page_size * page_size);

    if (stack_size > 2 * stack_kept)
        madvise(end + stack_kept - stack_size, stack_size - 2 * stack_kept, MADV_DONTNEED);
}

static int share(void *argument)
{
    sigset_t all;

    work(argument);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    leave_stack(argument);
    return 0;
}

/* No signal comes while the child begins or ends: its handler would run on a stack and with
 * variables that are not the child's yet, or no longer. */
static pid_t make_sharing(struct place *place)
{
    pid_t *id = (pid_t *)atomic_load(&place->id), child;
    int more = CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID |
               (flags & CLONE_THREAD ? 0 : SIGCHLD);
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &place->signals);
    child = clone(share, place->stack, flags | more, place, id, place->variables, id);
    pthread_sigmask(SIG_SETMASK, &place->signals, NULL); /* errno stays */
    return child;
}

void clone_child_note(_Atomic pid_t *id)
{
    noted = id;
}

/* Without shared memory, the system call returns twice, as fork() does. */
static pid_t make_copy(struct place *place)
{
    pid_t *id = (pid_t *)atomic_load(&place->id);
    int more = CLONE_CHILD_SETTID | (noted != NULL ? CLONE_PARENT_SETTID : 0) | SIGCHLD;
    pid_t child = (pid_t)syscall(SYS_clone, flags | more, NULL, noted, id, NULL);

    if (child == 0) {
        work(place);
        _exit(0);
    }
    return child;
}

pid_t clone_child(void (*function)(const void *argument), const void *argument, size_t size)
{
    struct place *place = flags & CLONE_VM ? find_place() : &own;

    if (place == NULL)
        return -1;
    place->function = function;
    memcpy(place->argument, argument, size);
    return flags & CLONE_VM ? make_sharing(place) : make_copy(place);
}
