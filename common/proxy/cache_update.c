/* Updates entries after a 304 or a response to HEAD. */
#include "common/proxy/cache_update.h"

#include "common/proxy/stored_fields.h"
#include "common/proxy/vary.h"

#include <stdlib.h>

/* Makes a record from that of the entry, updated by the fields of the origin's response. */
static bool merge(const struct cache_lookup *lookup, const struct parsed_response *head,
                  struct moment now, struct cache_record *record, struct buffer *merged)
{
    size_t room = lookup->entry.record.fields.length + head->fields.length;

    *merged = (struct buffer){.data = malloc(room), .capacity = room};
    if (merged->data == NULL)
        return false;
    stored_fields_update(lookup->entry.record.fields, head->fields, merged);
    *record = lookup->entry.record;
    record->fields = (struct text){merged->data, merged->length};
    record->requested = lookup->requested;
    record->received = now.seconds;
    record->removals = lookup->removals;
    return true;
}

/* The age counts from the request: a response that took from one second to the next is older than
 * one that came at once. */
static bool is_same_record(const struct cache_record *record, const struct cache_record *old)
{
    return record->requested == old->requested && record->received == old->received &&
           text_equal(record->fields, old->fields);
}

/* Stores the record, or removes the entry if it may not be stored any more. */
static void store(struct cache_lookup *lookup, const struct request *request,
                  struct cache_record *record, const struct cached_response *response)
{
    size_t room = record->fields.length;
    struct buffer list = {.data = malloc(room), .capacity = room};

    if (list.data == NULL || is_same_record(record, &lookup->entry.record)) {
        free(list.data);
        return;
    }
    vary_write_list(record->fields, &list);
    record->list = (struct text){list.data, list.length};
    if (freshness_may_store(response, request->fields, record->fields))
        cache_writer_update(lookup->cache, &lookup->entry, record, request->fields);
    else if (!lookup->control.no_store && !freshness_has_credentials(request->fields))
        cache_remove(lookup->cache, lookup->uri);
    free(list.data);
}

bool cache_update_entry(struct cache_lookup *lookup, const struct fetch *fetch,
                        const struct service_call *call, struct buffer *fields,
                        struct cached_response *response)
{
    struct cache_record record;

    if (!merge(lookup, &fetch->connection.response, call->now, &record, fields))
        return false;
    cache_lookup_read(lookup, response, &record);
    store(lookup, call->request, &record, response);
    return true;
}

/* An error that blames the request or its method says nothing about the entry. */
bool cache_update_supersedes(const struct request *request, int status)
{
    return !freshness_has_credentials(request->fields) && !freshness_is_for_one(status) &&
           (status < 400 || status == 404 || status == 410);
}

/* Returns true if the response to HEAD describes the entry. */
static bool is_same_response(const struct cache_record *record, const struct parsed_response *head)
{
    return head->status == record->status &&
           stored_fields_match_head(record->fields, record->length, head->fields);
}

void cache_update_by_head(struct cache_lookup *lookup, const struct fetch *fetch,
                          const struct service_call *call)
{
    const struct parsed_response *head = &fetch->connection.response;
    struct cached_response response;
    struct buffer fields;

    if (!cache_update_supersedes(call->request, head->status))
        return;
    if (!is_same_response(&lookup->entry.record, head))
        cache_remove(lookup->cache, lookup->uri);
    else if (cache_update_entry(lookup, fetch, call, &fields, &response))
        free(fields.data);
}
