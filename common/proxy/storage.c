#include "common/proxy/storage.h"

#include "common/http/fields.h"

#include <stdlib.h>
#include <string.h>

static bool write_uri(struct passage *passage, const struct request *request)
{
    size_t room = passage->host.length + request->path.length + request->query.length + 32;
    struct buffer uri = {.data = malloc(room), .capacity = room};

    if (uri.data == NULL)
        return false;
    buffer_add(&uri, TEXT("http://"));
    buffer_add(&uri, passage->host);
    for (size_t i = 0; i < uri.length; i++)
        if (uri.data[i] >= 'A' && uri.data[i] <= 'Z')
            uri.data[i] = (char)(uri.data[i] | 0x20);
    buffer_character(&uri, ':');
    buffer_number(&uri, passage->port);
    buffer_add(&uri, request->path);
    buffer_add(&uri, request->query);
    passage->uri = (struct text){uri.data, uri.length};
    return true;
}

bool storage_begin(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct request *request = errand->request;
    bool is_get = request->method == METHOD_GET;

    passage->why = "bypass";
    if (passage->cache == NULL || request->method == METHOD_CONNECT)
        return true;
    if (!write_uri(passage, request))
        return false;
    policy_directives(request->fields, true, &passage->asked);
    passage->why = is_get || request->method == METHOD_HEAD ? "request" : "method";
    if ((!is_get && request->method != METHOD_HEAD) || request->framing != FRAMING_NONE)
        return true;
    passage->writes = is_get && !passage->asked.no_store;
    /* Those are for the origin to judge, whatever is stored here. */
    passage->reads = !fields_has(request->fields, TEXT("If-Match")) &&
                     !fields_has(request->fields, TEXT("If-Unmodified-Since"));
    return true;
}

void storage_note_asking(struct errand *errand)
{
    struct passage *passage = errand->work;

    passage->requested = errand->now.seconds;
    if (passage->uri.data != NULL)
        passage->removals = cache_removals(passage->cache, passage->uri);
}

bool storage_is_for_all(const struct errand *errand)
{
    return !fields_has(errand->request->fields, TEXT("Authorization"));
}

void storage_drop_entry(struct passage *passage)
{
    cache_leave(&passage->entry);
    passage->validates = false;
}

bool storage_lock(struct passage *passage)
{
    memcpy(passage->locked, passage->name, sizeof passage->locked);
    passage->lock = cache_lock(passage->cache, passage->locked);
    return passage->lock >= 0;
}

void storage_give_way(struct passage *passage)
{
    cache_unlock(passage->cache, passage->locked, passage->lock);
    passage->lock = CACHE_LOCKED;
}

void storage_end(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->cache != NULL)
        cache_end(passage->cache, &passage->writer);
    storage_drop_entry(passage);
    storage_give_way(passage);
    free((char *)(uintptr_t)passage->uri.data);
}

void storage_add_parameter(struct buffer *lines, const char *name, int64_t number)
{
    buffer_string(lines, name);
    if (number < 0)
        buffer_character(lines, '-');
    buffer_number(lines, (uint64_t)(number < 0 ? -number : number));
}

void storage_begin_status(struct buffer *lines)
{
    buffer_add(lines, TEXT("Cache-Status: fork-vs-thread"));
}
