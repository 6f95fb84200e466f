/* Keeps deadlines in a wheel of slots. */
#include "common/workers/timers.h"

static unsigned slot_of(int64_t span)
{
    return (unsigned)(span & (TIMERS_SLOTS - 1));
}

void timers_open(struct timers *timers, int64_t now)
{
    *timers = (struct timers){.span = now / TIMERS_SPAN};
}

static void insert(struct timers *timers, struct timer *timer)
{
    int64_t span = timer->deadline / TIMERS_SPAN;
    unsigned slot;

    if (span < timers->span)
        span = timers->span;
    /* A deadline beyond the wheel is checked once in each of its rounds. */
    if (span > timers->span + TIMERS_SLOTS - 1)
        span = timers->span + TIMERS_SLOTS - 1;
    slot = slot_of(span);
    timer->span = span;
    timer->next = timers->slots[slot];
    timer->link = &timers->slots[slot];
    if (timer->next != NULL)
        timer->next->link = &timer->next;
    timers->slots[slot] = timer;
    timers->filled[slot / 64] |= UINT64_C(1) << slot % 64;
}

void timers_stop(struct timers *timers, struct timer *timer)
{
    unsigned slot = slot_of(timer->span);

    if (timer->link == NULL)
        return;
    *timer->link = timer->next;
    if (timer->next != NULL)
        timer->next->link = timer->link;
    timer->link = NULL;
    if (timers->slots[slot] == NULL)
        timers->filled[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

void timers_set(struct timers *timers, struct timer *timer, int64_t deadline)
{
    timer->deadline = deadline;
    if (timer->link != NULL && timer->span <= deadline / TIMERS_SPAN)
        return; /* it is checked early enough, and moved then */
    timers_stop(timers, timer);
    insert(timers, timer);
}

/* Returns the first span from the current one on whose slot is filled; -1 if none is. */
static int64_t first_filled(const struct timers *timers)
{
    int64_t span = timers->span, end = timers->span + TIMERS_SLOTS;

    while (span < end) {
        unsigned slot = slot_of(span);
        uint64_t rest = timers->filled[slot / 64] >> slot % 64;
        if (rest != 0)
            return span + __builtin_ctzll(rest);
        span += 64 - slot % 64;
    }
    return -1;
}

struct timer *timers_take(struct timers *timers, int64_t now)
{
    int64_t present = now / TIMERS_SPAN, span;

    while ((span = first_filled(timers)) >= 0 && span < present) {
        struct timer *timer = timers->slots[slot_of(span)];
        timers->span = span;
        timers_stop(timers, timer);
        if (timer->deadline <= now)
            return timer;
        insert(timers, timer); /* it was postponed */
    }
    timers->span = present;
    return NULL;
}

int timers_wait(const struct timers *timers, int64_t now)
{
    int64_t span = first_filled(timers);
    int64_t end = (span + 1) * TIMERS_SPAN;

    if (span < 0)
        return -1;
    return end > now ? (int)(end - now) : 0;
}

size_t timers_list(const struct timers *timers, struct timer **list, size_t room)
{
    size_t count = 0;

    for (int i = 0; i < TIMERS_SLOTS; i++)
        for (struct timer *timer = timers->slots[i]; timer != NULL && count < room;
             timer = timer->next)
            list[count++] = timer;
    return count;
}

struct timer *timers_any(struct timers *timers)
{
    int64_t span = first_filled(timers);
    struct timer *timer = span >= 0 ? timers->slots[slot_of(span)] : NULL;

    if (timer != NULL)
        timers_stop(timers, timer);
    return timer;
}
