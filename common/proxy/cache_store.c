/* Decides whether the origin's response is stored, and stores it. */
#include "common/proxy/cache_store.h"

#include "common/proxy/cache_growing.h"
#include "common/proxy/cache_invalidate.h"
#include "common/proxy/cache_status.h"
#include "common/proxy/cache_update.h"
#include "common/proxy/stored_fields.h"
#include "common/proxy/vary.h"

#include <stdlib.h>

/* ---- an entry that grows ---- */

void cache_store_show(struct cache_store *store, const struct fetch *fetch)
{
    const struct parsed_response *head = &fetch->upstream.response;
    struct cache_lookup *lookup = store->lookup;

    if (!store->storing || !store->fresh || !collapse_is_held(&lookup->collapse))
        return;
    if (!store->shown)
        cache_growing_show(lookup->cache, &store->writer, lookup->collapse.name,
                           head->has_length ? head->content_length : CACHE_GROWING_UNKNOWN);
    else if (store->told != store->writer.header.length)
        cache_growing_tell(lookup->cache, &store->writer);
    store->shown = true;
    store->told = store->writer.header.length;
}

/* Tells those who read the entry as it grows how it has ended. Returns false if it cannot. */
static bool end_growing(struct cache_store *store, bool whole)
{
    bool told = !store->shown || cache_growing_end(store->lookup->cache, &store->writer, whole);

    store->shown = false;
    return told;
}

/* ---- beginning and end ---- */

void cache_store_start(struct cache_store *store, struct cache_lookup *lookup)
{
    *store = (struct cache_store){.lookup = lookup, .writer.file = -1};
}

void cache_store_end(struct cache_store *store)
{
    end_growing(store, false);
    if (store->lookup->cache != NULL)
        cache_writer_end(store->lookup->cache, &store->writer);
}

/* Has other requests fetch for themselves for a while: this response is of no use to them. */
static void note_bypass(const struct cache_lookup *lookup, struct moment now)
{
    fetch_lock_note_bypass(lookup->cache, lookup->name, now.seconds);
}

/* ---- the head ---- */

static bool may_store(struct cache_store *store, const struct parsed_response *head,
                      const struct service_call *call)
{
    const struct cache_lookup *lookup = store->lookup;
    struct cached_response response;

    if (!(lookup->may_store || store->for_later) ||
        (head->has_length && head->content_length > lookup->cache->limit / 2))
        return false;
    if (head->status >= 400 && freshness_has_credentials(call->request->fields))
        return false;
    cache_lookup_read(lookup, &response,
                      &(struct cache_record){.status = head->status,
                                             .fields = head->fields,
                                             .requested = lookup->requested,
                                             .received = call->now.seconds});
    store->fresh = freshness_is_fresh(&response, call->now.seconds);
    return freshness_may_store(&response, call->request->fields, head->fields);
}

/* Returns true if the response to a POST may answer a later GET (RFC 9110, section 9.3.3), and no
 * other request has changed anything meanwhile. */
static bool is_for_later(const struct cache_lookup *lookup, const struct fetch *fetch,
                         const struct service_call *call)
{
    const struct parsed_response *head = &fetch->upstream.response;
    struct cached_response response;

    if (call->request->method != METHOD_POST || head->status != 200 ||
        cache_is_removed_since(lookup->cache, lookup->uri, lookup->removals) ||
        !cache_invalidate_is_about_target(lookup, fetch))
        return false;
    cache_lookup_read(lookup, &response,
                      &(struct cache_record){.status = head->status, .fields = head->fields});
    return freshness_is_explicit(&response);
}

static bool begin(struct cache_store *store, const struct parsed_response *head,
                  const struct service_call *call)
{
    const struct cache_lookup *lookup = store->lookup;
    size_t room = head->fields.length;
    struct cache_record record = {.uri = lookup->uri,
                                  .reason = head->reason,
                                  .status = head->status,
                                  .minor = head->minor,
                                  .requested = lookup->requested,
                                  .received = call->now.seconds,
                                  .removals = lookup->removals};
    struct buffer fields = {.data = malloc(2 * room), .capacity = room}, list;
    bool begun;

    if (fields.data == NULL)
        return false;
    list = (struct buffer){.data = fields.data + room, .capacity = room};
    stored_fields_write(head->fields, &fields);
    vary_write_list(head->fields, &list);
    record.fields = (struct text){fields.data, fields.length};
    record.list = (struct text){list.data, list.length};
    begun = cache_writer_begin(lookup->cache, &store->writer, &record, call->request->fields);
    free(fields.data);
    return begun;
}

/* Does what remains to be done for a response that is not stored. */
static void pass(struct cache_lookup *lookup, int status, const struct service_call *call)
{
    if (cache_lookup_has_entry(lookup) && lookup->may_store &&
        cache_update_supersedes(call->request, status))
        cache_remove(lookup->cache, lookup->uri);
    if (collapse_is_held(&lookup->collapse) && status != 304 && call->request->method == METHOD_GET)
        note_bypass(lookup, call->now);
    collapse_unlock(&lookup->collapse);
}

void cache_store_begin(struct cache_store *store, struct fetch *fetch, struct service_call *call)
{
    struct cache_lookup *lookup = store->lookup;
    const struct parsed_response *head = &fetch->upstream.response;

    if (lookup->cache == NULL || lookup->uri.data == NULL)
        return;
    store->for_later = is_for_later(lookup, fetch, call);
    cache_invalidate(lookup, fetch, call->request->method);
    if (store->for_later)
        lookup->removals = cache_removals(lookup->cache, lookup->uri);
    if (call->request->method == METHOD_HEAD && cache_lookup_has_entry(lookup))
        cache_update_by_head(lookup, fetch, call);
    store->storing = may_store(store, head, call) && begin(store, head, call);
    if (!store->storing) {
        pass(lookup, head->status, call);
        return;
    }
    fetch->writer.file = store->writer.file;
    fetch->writer.file_start = store->writer.start;
}

/* ---- the body ---- */

/* If the disk is full or the response too large, the client gets the stored part from the file, and
 * the rest without the cache. */
bool cache_store_add(struct cache_store *store, struct fetch *fetch,
                     const struct service_call *call, struct text data)
{
    struct cache_lookup *lookup = store->lookup;

    if (!store->storing)
        return false;
    if (cache_writer_add(lookup->cache, &store->writer, data)) {
        fetch->writer.file_end += data.length;
        if (collapse_is_held(&lookup->collapse))
            fetch_lock_note_progress(lookup->cache, lookup->name, call->now.milliseconds);
        return true;
    }
    end_growing(store, false);
    store->storing = false;
    note_bypass(lookup, call->now);
    collapse_unlock(&lookup->collapse);
    return false;
}

void cache_store_finish(struct cache_store *store, struct moment now, bool whole)
{
    struct cache_lookup *lookup = store->lookup;
    bool told = end_growing(store, whole);
    bool stored =
        told && store->storing && whole && cache_writer_commit(lookup->cache, &store->writer);

    store->storing = false;
    store->stored = stored;
    if (!whole)
        collapse_note_failure(&lookup->collapse, 502, now.milliseconds);
    else if (stored && store->fresh)
        collapse_note_answer(&lookup->collapse, store->writer.name, now.milliseconds);
    else if (!store->fresh && cache_lookup_has_entry(lookup) && collapse_is_held(&lookup->collapse))
        note_bypass(lookup, now);
    collapse_unlock(&lookup->collapse);
}

void cache_store_write_status(const struct cache_store *store, const struct fetch *fetch,
                              struct buffer *lines)
{
    const struct cache_status status = {
        .forward = store->lookup->reason,
        .origin_status = fetch->upstream.response.status,
        .stored = store->storing,
    };

    if (store->lookup->cache != NULL)
        cache_status_write(&status, lines);
}
