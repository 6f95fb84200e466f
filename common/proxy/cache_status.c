/* Writes the Cache-Status field. */
#include "common/proxy/cache_status.h"

static void add_number(struct buffer *lines, struct text name, int64_t number)
{
    buffer_add(lines, name);
    if (number < 0)
        buffer_character(lines, '-');
    buffer_number(lines, (uint64_t)(number < 0 ? -number : number));
}

void cache_status_write(const struct cache_status *status, struct buffer *lines)
{
    buffer_add(lines, TEXT("Cache-Status: fork-vs-thread; "));
    if (status->forward == NULL) {
        buffer_add(lines, TEXT("hit"));
    } else {
        buffer_add(lines, TEXT("fwd="));
        buffer_string(lines, status->forward);
    }
    if (status->origin_status > 0)
        add_number(lines, TEXT("; fwd-status="), status->origin_status);
    if (status->stored)
        buffer_add(lines, TEXT("; stored"));
    if (status->collapsed)
        buffer_add(lines, TEXT("; collapsed"));
    if (status->seconds_left != NULL)
        add_number(lines, TEXT("; ttl="), *status->seconds_left);
    buffer_add(lines, TEXT("\r\n"));
}
