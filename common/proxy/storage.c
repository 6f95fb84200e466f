#include "common/proxy/storage.h"

#include "common/http/fields.h"

#include <stdlib.h>
#include <string.h>

static bool write_uri(struct proxy_request *proxied, const struct request *request)
{
    size_t room = proxied->host.length + request->path.length + request->query.length + 32;
    struct buffer uri = {.data = malloc(room), .capacity = room};

    if (uri.data == NULL)
        return false;
    buffer_add(&uri, TEXT("http://"));
    buffer_add(&uri, proxied->host);
    for (size_t i = 0; i < uri.length; i++)
        if (uri.data[i] >= 'A' && uri.data[i] <= 'Z')
            uri.data[i] = (char)(uri.data[i] | 0x20);
    buffer_character(&uri, ':');
    buffer_number(&uri, proxied->port);
    buffer_add(&uri, request->path);
    buffer_add(&uri, request->query);
    proxied->uri = (struct text){uri.data, uri.length};
    return true;
}

bool storage_begin(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    const struct request *request = call->request;
    bool is_get = request->method == METHOD_GET;

    proxied->why = "bypass";
    if (proxied->cache == NULL || request->method == METHOD_CONNECT)
        return true;
    if (!write_uri(proxied, request))
        return false;
    freshness_directives(request->fields, true, &proxied->asked);
    proxied->why = is_get || request->method == METHOD_HEAD ? "request" : "method";
    if ((!is_get && request->method != METHOD_HEAD) || request->framing != FRAMING_NONE)
        return true;
    proxied->writes = is_get && !proxied->asked.no_store;
    /* Those are for the origin to judge, whatever is stored here. */
    proxied->reads = !fields_has(request->fields, TEXT("If-Match")) &&
                     !fields_has(request->fields, TEXT("If-Unmodified-Since"));
    return true;
}

void storage_note_asking(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    proxied->requested = call->now.seconds;
    if (proxied->uri.data != NULL)
        proxied->removals = cache_removals(proxied->cache, proxied->uri);
}

bool storage_is_for_all(const struct service_call *call)
{
    return !fields_has(call->request->fields, TEXT("Authorization"));
}

void storage_drop_entry(struct proxy_request *proxied)
{
    cache_entry_close(&proxied->entry);
    proxied->validates = false;
}

bool storage_lock(struct proxy_request *proxied)
{
    memcpy(proxied->locked, proxied->name, sizeof proxied->locked);
    proxied->lock = cache_lock_take(proxied->cache, proxied->locked);
    return proxied->lock >= 0;
}

void storage_give_way(struct proxy_request *proxied)
{
    cache_lock_release(proxied->cache, proxied->locked, proxied->lock);
    proxied->lock = CACHE_LOCK_BUSY;
}

void storage_end(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    if (proxied->cache != NULL)
        cache_writer_end(proxied->cache, &proxied->writer);
    storage_drop_entry(proxied);
    storage_give_way(proxied);
    free((char *)(uintptr_t)proxied->uri.data);
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
