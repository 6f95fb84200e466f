#include "common/proxy/cache_store.h"

#include "common/http/fields.h"
#include "common/proxy/storage.h"

#include <stdlib.h>

/* What the stored reply is with these fields of a newer one. The fields are from malloc. */
static bool update(struct service_call *call, struct cache_record *record, struct buffer *merged,
                   struct cached_response *response)
{
    struct proxy_request *proxied = call->work;
    const struct parsed_response *head = &proxied->fetch->upstream.response;
    size_t room = proxied->entry.record.fields.length + head->fields.length;

    *merged = (struct buffer){.data = malloc(room), .capacity = room};
    if (merged->data == NULL)
        return false;
    freshness_merge(proxied->entry.record.fields, head->fields, merged);
    *record = proxied->entry.record;
    record->fields = (struct text){merged->data, merged->length};
    record->requested = proxied->requested;
    record->received = call->now.seconds;
    record->removals = proxied->removals;
    freshness_read(response, record->status, record->fields, record->requested, record->received);
    return true;
}

/* Whether a record says what the entry says already. */
static bool is_no_news(const struct cache_record *record, const struct cache_record *old)
{
    return record->received == old->received && text_equal(record->fields, old->fields);
}

/* Stores the entry anew with other fields, if it may still be stored. */
static void renew(struct service_call *call, struct cache_record *record,
                  const struct cached_response *response)
{
    struct proxy_request *proxied = call->work;
    size_t room = record->fields.length;
    struct buffer list = {.data = malloc(room), .capacity = room};

    if (list.data == NULL || is_no_news(record, &proxied->entry.record)) {
        free(list.data);
        return;
    }
    freshness_vary_list(record->fields, &list);
    record->list = (struct text){list.data, list.length};
    if (freshness_may_store(response, call->request->fields, record->fields))
        cache_writer_update(proxied->cache, &proxied->entry, record, call->request->fields);
    else if (!proxied->asked.no_store && storage_is_for_all(call))
        cache_remove(proxied->cache, proxied->uri);
    free(list.data);
}

bool cache_store_renew(struct service_call *call, struct buffer *fields,
                       struct cached_response *response)
{
    struct cache_record record;

    if (!update(call, &record, fields, response))
        return false;
    renew(call, &record, response);
    return true;
}

/* ---- what a reply makes invalid ---- */

static bool is_safe(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_OPTIONS ||
           method == METHOD_TRACE;
}

/* Of a reference to the same origin, where that has it; of any other one, nothing. */
static struct text own_path(const struct proxy_request *proxied, struct text reference)
{
    const struct text scheme = TEXT("http://");
    size_t skip = scheme.length;
    struct text authority, host;
    uint16_t port;

    reference.length = text_find(reference, '#');
    if (reference.length >= 2 && reference.data[0] == '/' && reference.data[1] == '/')
        skip = 2;
    else if (reference.length > 0 && reference.data[0] == '/')
        return reference;
    else if (reference.length < skip || !text_same((struct text){reference.data, skip}, scheme))
        return (struct text){0};
    reference = (struct text){reference.data + skip, reference.length - skip};
    authority = (struct text){reference.data, text_find(reference, '/')};
    if (!address_split(authority, 80, &host, &port) || port != proxied->port ||
        !text_same(host, proxied->host))
        return (struct text){0};
    return (struct text){reference.data + authority.length, reference.length - authority.length};
}

/* Removes what a field of the reply names, if that is of the same origin. */
static void invalidate_named(struct service_call *call, struct text name)
{
    struct proxy_request *proxied = call->work;
    struct text value, path, uri = proxied->uri;
    size_t origin = 7 + text_find((struct text){uri.data + 7, uri.length - 7}, '/');
    struct buffer target;

    if (!fields_single(proxied->fetch->upstream.response.fields, name, &value))
        return;
    path = own_path(proxied, value);
    if (path.length == 0)
        return;
    target =
        (struct buffer){.data = malloc(origin + path.length), .capacity = origin + path.length};
    if (target.data == NULL)
        return;
    buffer_add(&target, (struct text){uri.data, origin});
    buffer_add(&target, path);
    cache_remove(proxied->cache, (struct text){target.data, target.length});
    free(target.data);
}

static void invalidate(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    cache_remove(proxied->cache, proxied->uri);
    invalidate_named(call, TEXT("Location"));
    invalidate_named(call, TEXT("Content-Location"));
}

/* Whether a reply of that status can mean that the origin has no such thing any more as is stored:
 * one that blames the request, or the method, says nothing of that. */
static bool supersedes(const struct service_call *call, int status)
{
    return storage_is_for_all(call) && !freshness_is_for_one(status) &&
           (status < 400 || status == 404 || status == 410);
}

/* Whether a reply to HEAD is about the stored reply to GET, as it was. */
static bool is_same(const struct proxy_request *proxied)
{
    const struct cache_record *record = &proxied->entry.record;
    const struct parsed_response *head = &proxied->fetch->upstream.response;

    return head->status == record->status &&
           freshness_same_head(record->fields, record->length, head->fields);
}

/* A reply to HEAD says how the stored reply to GET would look now. */
static void compare_head(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    int status = proxied->fetch->upstream.response.status;
    struct cached_response response;
    struct buffer fields;

    if (!supersedes(call, status))
        return;
    if (!is_same(proxied)) {
        cache_remove(proxied->cache, proxied->uri);
    } else if (cache_store_renew(call, &fields, &response)) {
        free(fields.data);
    }
}

/* ---- the reply itself ---- */

/* Begins to store the reply. */
static bool keep(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    const struct parsed_response *head = &proxied->fetch->upstream.response;
    size_t room = head->fields.length;
    struct cache_record record = {.uri = proxied->uri,
                                  .reason = head->reason,
                                  .status = head->status,
                                  .minor = head->minor,
                                  .requested = proxied->requested,
                                  .received = call->now.seconds,
                                  .removals = proxied->removals};
    struct buffer kept = {.data = malloc(2 * room), .capacity = room}, list;
    bool begun;

    if (kept.data == NULL)
        return false;
    list = (struct buffer){.data = kept.data + room, .capacity = room};
    freshness_keep(head->fields, &kept);
    freshness_vary_list(head->fields, &list);
    record.fields = (struct text){kept.data, kept.length};
    record.list = (struct text){list.data, list.length};
    begun = cache_writer_begin(proxied->cache, &proxied->writer, &record, call->request->fields);
    free(kept.data);
    return begun;
}

static bool may_keep(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    const struct parsed_response *head = &proxied->fetch->upstream.response;
    struct cached_response response;

    if (!proxied->writes || (head->has_length && head->content_length > proxied->cache->limit / 2))
        return false;
    if (head->status >= 400 && !storage_is_for_all(call))
        return false;
    freshness_read(&response, head->status, head->fields, proxied->requested, call->now.seconds);
    proxied->stale_again =
        proxied->entry.space != NULL && !freshness_is_fresh(&response, call->now.seconds);
    return freshness_may_store(&response, call->request->fields, head->fields);
}

void cache_store_take(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    const struct parsed_response *head = &proxied->fetch->upstream.response;
    bool found = proxied->entry.space != NULL;

    if (proxied->cache == NULL || proxied->uri.data == NULL)
        return;
    if (!is_safe(call->request->method) && head->status < 400)
        invalidate(call);
    if (call->request->method == METHOD_HEAD && found)
        compare_head(call);
    proxied->storing = may_keep(call) && keep(call);
    if (proxied->storing) {
        struct response_writer *writer = &proxied->fetch->writer;
        writer->file = proxied->writer.file;
        writer->file_start = proxied->writer.start;
        return;
    }
    if (found && proxied->writes && supersedes(call, head->status))
        cache_remove(proxied->cache, proxied->uri); /* it is not what the origin has now */
    if (proxied->lock >= 0 && head->status != 304)
        cache_lock_note_bypass(proxied->cache, proxied->name, call->now.seconds);
    storage_give_way(proxied);
}

bool cache_store_add(struct service_call *call, struct text data)
{
    struct proxy_request *proxied = call->work;

    if (!proxied->storing)
        return false;
    if (cache_writer_add(proxied->cache, &proxied->writer, data)) {
        proxied->fetch->writer.file_end += data.length;
        if (proxied->lock >= 0)
            cache_lock_note_progress(proxied->cache, proxied->locked, call->now.milliseconds);
        return true;
    }
    /* The disk is full, or the reply too large: what is in the file goes to the client, and then
     * all else without it. */
    proxied->storing = false;
    cache_lock_note_bypass(proxied->cache, proxied->name, call->now.seconds);
    storage_give_way(proxied);
    return false;
}

void cache_store_finish(struct service_call *call, bool whole)
{
    struct proxy_request *proxied = call->work;

    if (proxied->storing && whole)
        cache_writer_commit(proxied->cache, &proxied->writer);
    proxied->storing = false;
    if (proxied->stale_again && proxied->lock >= 0)
        cache_lock_note_bypass(proxied->cache, proxied->locked, call->now.seconds);
    storage_give_way(proxied);
}

void cache_store_describe(const struct service_call *call, struct buffer *lines)
{
    const struct proxy_request *proxied = call->work;

    if (proxied->cache == NULL)
        return;
    storage_begin_status(lines);
    buffer_add(lines, TEXT("; fwd="));
    buffer_string(lines, proxied->why);
    storage_add_parameter(lines, "; fwd-status=", proxied->fetch->upstream.response.status);
    if (proxied->storing)
        buffer_add(lines, TEXT("; stored"));
    buffer_add(lines, TEXT("\r\n"));
}
