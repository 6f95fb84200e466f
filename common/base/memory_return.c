/* Gives freed memory back to the kernel after many connections have ended. */
#include "common/base/memory_return.h"

#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

/* Where there were never so many connections, there is little to give back. */
#define MANY 8
/* Memory is given back when at most this part of the most connections is left, and for so long: the
 * next connections may need the memory again. */
#define FEW_PART          8
#define CALM_MILLISECONDS 1000

/* The GNU C library caches freed pieces by their size, up to CACHED of each of CACHED_SIZES sizes,
 * and has no function that empties the cache. The pieces of many connections lie scattered, each
 * on a page that cannot be given back. Fewer connections than SCATTERED leave few such pages. */
#define SCATTERED    64
#define CACHED       7
#define CACHED_SIZES 64
static size_t cached_size(int piece)
{
    return 24 + (size_t)piece / CACHED * 16;
}

/* The most bytes of stacks of ended threads that the C library keeps: 40 MiB by default. It frees
 * those above this limit when a thread ends, and has no function for that. Dynamically linked
 * builds do not see the variable. */
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

/* Empties the caches of the C library: takes what is in them and as many new pieces, most of which
 * lie together, and frees the new ones first. They fill the caches, so that the old ones are freed
 * for good. */
static void free_cached(void)
{
    enum { COUNT = CACHED * CACHED_SIZES };
    void *scattered[COUNT], *together[COUNT];

    malloc_trim(0);
    for (int i = 0; i < COUNT; i++)
        scattered[i] = malloc(cached_size(i));
    for (int i = 0; i < COUNT; i++)
        together[i] = malloc(cached_size(i));
    for (int i = 0; i < COUNT; i++)
        free(together[i]);
    for (int i = 0; i < COUNT; i++)
        free(scattered[i]);
}

static void give_back(const struct memory_return *memory)
{
    if (memory->threads)
        free_stacks();
    /* The second time, more of the new pieces lie together. */
    for (int i = 0; i < 2 && memory->pieces && memory->most >= SCATTERED; i++)
        free_cached();
    malloc_trim(0);
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
    give_back(memory);
    memory->most = connections;
    memory->since = 0;
    return -1;
}
