/* Gives freed memory back to the kernel after many connections have ended. */
#include "common/base/memory_return.h"

#include <malloc.h>
#include <pthread.h>
#include <stddef.h>

/* Fewer connections leave little behind. */
#define MANY 8
/* Few are this part of the most. */
#define FEW_PART 8
/* They must be few for so long: the next ones may need the memory again. */
#define CALM_MILLISECONDS 1000

/* How much of the stacks of ended threads the C library keeps: up to 40 MiB. It frees those above
 * this limit when a thread ends, and has no function for that. Builds that load the library do not
 * see the variable. */
extern size_t stack_limit __asm__("__nptl_stack_cache_maxsize")
    __attribute__((weak, visibility("hidden")));

static void *end_at_once(void *argument)
{
    return argument;
}

static void free_stacks(void)
{
    size_t *limit = &stack_limit, before;
    pthread_t thread;

    if (limit == NULL)
        return;
    before = *limit;
    *limit = 0;
    if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
        pthread_join(thread, NULL);
    *limit = before;
}

int memory_return_review(struct memory_return *memory, int64_t connections, int64_t now)
{
    memory_return_note(memory, connections);
    if (memory->most < MANY)
        return -1;
    if (connections > memory->most / FEW_PART)
        memory->since = 0;
    else if (memory->since == 0)
        memory->since = now;
    if (memory->since == 0 || now - memory->since < CALM_MILLISECONDS)
        return CALM_MILLISECONDS;
    if (memory->threads)
        free_stacks();
    malloc_trim(0);
    memory->most = connections;
    memory->since = 0;
    return -1;
}
