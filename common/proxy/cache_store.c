#include "common/proxy/cache_store.h"

#include "common/http/fields.h"
#include "common/proxy/storage.h"

#include <stdlib.h>

/* What the stored reply is with these fields of a newer one. The fields are from malloc. */
static bool update(struct errand *errand, struct cache_record *record, struct buffer *merged,
                   struct policy_reply *reply)
{
    struct passage *passage = errand->work;
    const struct reply *head = &passage->fetch->upstream.reply;
    size_t room = passage->entry.record.fields.length + head->fields.length;

    *merged = (struct buffer){.data = malloc(room), .capacity = room};
    if (merged->data == NULL)
        return false;
    policy_merge(passage->entry.record.fields, head->fields, merged);
    *record = passage->entry.record;
    record->fields = (struct text){merged->data, merged->length};
    record->requested = passage->requested;
    record->received = errand->now.seconds;
    record->removals = passage->removals;
    policy_read(reply, record->status, record->fields, record->requested, record->received);
    return true;
}

/* Whether a record says what the entry says already. */
static bool is_no_news(const struct cache_record *record, const struct cache_record *old)
{
    return record->received == old->received && text_equal(record->fields, old->fields);
}

/* Stores the entry anew with other fields, if it may still be stored. */
static void renew(struct errand *errand, struct cache_record *record,
                  const struct policy_reply *reply)
{
    struct passage *passage = errand->work;
    size_t room = record->fields.length;
    struct buffer list = {.data = malloc(room), .capacity = room};

    if (list.data == NULL || is_no_news(record, &passage->entry.record)) {
        free(list.data);
        return;
    }
    policy_vary_list(record->fields, &list);
    record->list = (struct text){list.data, list.length};
    if (policy_may_store(reply, errand->request->fields, record->fields))
        cache_renew(passage->cache, &passage->entry, record, errand->request->fields);
    else if (!passage->asked.no_store && storage_is_for_all(errand))
        cache_remove(passage->cache, passage->uri);
    free(list.data);
}

bool keeping_renew(struct errand *errand, struct buffer *fields, struct policy_reply *reply)
{
    struct cache_record record;

    if (!update(errand, &record, fields, reply))
        return false;
    renew(errand, &record, reply);
    return true;
}

/* ---- what a reply makes invalid ---- */

static bool is_safe(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_OPTIONS ||
           method == METHOD_TRACE;
}

/* Of a reference to the same origin, where that has it; of any other one, nothing. */
static struct text own_path(const struct passage *passage, struct text reference)
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
    if (!destination_split(authority, 80, &host, &port) || port != passage->port ||
        !text_same(host, passage->host))
        return (struct text){0};
    return (struct text){reference.data + authority.length, reference.length - authority.length};
}

/* Removes what a field of the reply names, if that is of the same origin. */
static void invalidate_named(struct errand *errand, struct text name)
{
    struct passage *passage = errand->work;
    struct text value, path, uri = passage->uri;
    size_t origin = 7 + text_find((struct text){uri.data + 7, uri.length - 7}, '/');
    struct buffer target;

    if (!fields_single(passage->fetch->upstream.reply.fields, name, &value))
        return;
    path = own_path(passage, value);
    if (path.length == 0)
        return;
    target =
        (struct buffer){.data = malloc(origin + path.length), .capacity = origin + path.length};
    if (target.data == NULL)
        return;
    buffer_add(&target, (struct text){uri.data, origin});
    buffer_add(&target, path);
    cache_remove(passage->cache, (struct text){target.data, target.length});
    free(target.data);
}

static void invalidate(struct errand *errand)
{
    struct passage *passage = errand->work;

    cache_remove(passage->cache, passage->uri);
    invalidate_named(errand, TEXT("Location"));
    invalidate_named(errand, TEXT("Content-Location"));
}

/* Whether a reply of that status can mean that the origin has no such thing any more as is stored:
 * one that blames the request, or the method, says nothing of that. */
static bool supersedes(const struct errand *errand, int status)
{
    return storage_is_for_all(errand) && !policy_is_for_one(status) &&
           (status < 400 || status == 404 || status == 410);
}

/* Whether a reply to HEAD is about the stored reply to GET, as it was. */
static bool is_same(const struct passage *passage)
{
    const struct cache_record *record = &passage->entry.record;
    const struct reply *head = &passage->fetch->upstream.reply;

    return head->status == record->status &&
           policy_same_head(record->fields, record->length, head->fields);
}

/* A reply to HEAD says how the stored reply to GET would look now. */
static void compare_head(struct errand *errand)
{
    struct passage *passage = errand->work;
    int status = passage->fetch->upstream.reply.status;
    struct policy_reply reply;
    struct buffer fields;

    if (!supersedes(errand, status))
        return;
    if (!is_same(passage)) {
        cache_remove(passage->cache, passage->uri);
    } else if (keeping_renew(errand, &fields, &reply)) {
        free(fields.data);
    }
}

/* ---- the reply itself ---- */

/* Begins to store the reply. */
static bool keep(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *head = &passage->fetch->upstream.reply;
    size_t room = head->fields.length;
    struct cache_record record = {.uri = passage->uri,
                                  .reason = head->reason,
                                  .status = head->status,
                                  .minor = head->minor,
                                  .requested = passage->requested,
                                  .received = errand->now.seconds,
                                  .removals = passage->removals};
    struct buffer kept = {.data = malloc(2 * room), .capacity = room}, list;
    bool begun;

    if (kept.data == NULL)
        return false;
    list = (struct buffer){.data = kept.data + room, .capacity = room};
    policy_keep(head->fields, &kept);
    policy_vary_list(head->fields, &list);
    record.fields = (struct text){kept.data, kept.length};
    record.list = (struct text){list.data, list.length};
    begun = cache_begin(passage->cache, &passage->writer, &record, errand->request->fields);
    free(kept.data);
    return begun;
}

static bool may_keep(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *head = &passage->fetch->upstream.reply;
    struct policy_reply reply;

    if (!passage->writes || (head->has_length && head->content_length > passage->cache->limit / 2))
        return false;
    if (head->status >= 400 && !storage_is_for_all(errand))
        return false;
    policy_read(&reply, head->status, head->fields, passage->requested, errand->now.seconds);
    passage->stale_again =
        passage->entry.space != NULL && !policy_is_fresh(&reply, errand->now.seconds);
    return policy_may_store(&reply, errand->request->fields, head->fields);
}

void keeping_take(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *head = &passage->fetch->upstream.reply;
    bool found = passage->entry.space != NULL;

    if (passage->cache == NULL || passage->uri.data == NULL)
        return;
    if (!is_safe(errand->request->method) && head->status < 400)
        invalidate(errand);
    if (errand->request->method == METHOD_HEAD && found)
        compare_head(errand);
    passage->storing = may_keep(errand) && keep(errand);
    if (passage->storing) {
        struct delivery *delivery = &passage->fetch->delivery;
        delivery->file = passage->writer.file;
        delivery->file_start = passage->writer.start;
        return;
    }
    if (found && passage->writes && supersedes(errand, head->status))
        cache_remove(passage->cache, passage->uri); /* it is not what the origin has now */
    if (passage->lock >= 0 && head->status != 304)
        cache_pass(passage->cache, passage->name, errand->now.seconds);
    storage_give_way(passage);
}

bool keeping_add(struct errand *errand, struct text data)
{
    struct passage *passage = errand->work;

    if (!passage->storing)
        return false;
    if (cache_write(passage->cache, &passage->writer, data)) {
        passage->fetch->delivery.file_end += data.length;
        if (passage->lock >= 0)
            cache_advance(passage->cache, passage->locked, errand->now.milliseconds);
        return true;
    }
    /* The disk is full, or the reply too large: what is in the file goes to the client, and then
     * all else without it. */
    passage->storing = false;
    cache_pass(passage->cache, passage->name, errand->now.seconds);
    storage_give_way(passage);
    return false;
}

void keeping_finish(struct errand *errand, bool whole)
{
    struct passage *passage = errand->work;

    if (passage->storing && whole)
        cache_commit(passage->cache, &passage->writer);
    passage->storing = false;
    if (passage->stale_again && passage->lock >= 0)
        cache_pass(passage->cache, passage->locked, errand->now.seconds);
    storage_give_way(passage);
}

void keeping_describe(const struct errand *errand, struct buffer *lines)
{
    const struct passage *passage = errand->work;

    if (passage->cache == NULL)
        return;
    storage_begin_status(lines);
    buffer_add(lines, TEXT("; fwd="));
    buffer_string(lines, passage->why);
    storage_add_parameter(lines, "; fwd-status=", passage->fetch->upstream.reply.status);
    if (passage->storing)
        buffer_add(lines, TEXT("; stored"));
    buffer_add(lines, TEXT("\r\n"));
}
