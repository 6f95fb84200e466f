#include "common/scoreboard.h"

#include <stddef.h>
#include <sys/mman.h>

struct scoreboard *scoreboard_make(int posts)
{
    size_t size = sizeof(struct scoreboard) + (size_t)posts * sizeof(struct post);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct scoreboard *board = memory;

    if (memory == MAP_FAILED)
        return NULL;
    board->post_count = posts;
    return board;
}

static void add(_Atomic uint64_t *counter, uint64_t count)
{
    if (count > 0)
        atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}

void scoreboard_add(struct post *post, struct tally *tally)
{
    add(&post->requests, tally->requests);
    add(&post->errors, tally->errors);
    add(&post->bytes, tally->bytes);
    add(&post->dropped, tally->dropped);
    *tally = (struct tally){0};
}

struct total scoreboard_total(const struct scoreboard *board)
{
    struct total total = {0};

    for (int i = 0; i < board->post_count; i++) {
        total.connections += board->posts[i].connections;
        total.requests += board->posts[i].requests;
        total.errors += board->posts[i].errors;
        total.bytes += board->posts[i].bytes;
        total.dropped += board->posts[i].dropped;
    }
    return total;
}

bool scoreboard_stopping(const struct scoreboard *board)
{
    return atomic_load_explicit(&board->stop_deadline, memory_order_relaxed) != 0;
}

void scoreboard_note_peak(struct scoreboard *board, int64_t active)
{
    uint64_t peak = atomic_load_explicit(&board->peak, memory_order_relaxed);

    while (active > (int64_t)peak &&
           !atomic_compare_exchange_weak(&board->peak, &peak, (uint64_t)active))
        ;
}
