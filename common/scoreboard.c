#include "common/scoreboard.h"

#include <stddef.h>
#include <sys/mman.h>

struct scoreboard *scoreboard_make(void)
{
    void *memory = mmap(NULL, sizeof(struct scoreboard), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void scoreboard_add(struct scoreboard *board, struct tally *tally)
{
    if (tally->requests > 0)
        atomic_fetch_add_explicit(&board->requests, tally->requests, memory_order_relaxed);
    if (tally->errors > 0)
        atomic_fetch_add_explicit(&board->errors, tally->errors, memory_order_relaxed);
    if (tally->bytes > 0)
        atomic_fetch_add_explicit(&board->bytes, tally->bytes, memory_order_relaxed);
    *tally = (struct tally){0};
}

bool scoreboard_stopping(const struct scoreboard *board)
{
    return atomic_load_explicit(&board->stop_deadline, memory_order_relaxed) != 0;
}
