/* Decides whether the origin's response is stored, and stores it. */
#include "common/proxy/cache_store.h"

#include "common/http/fields.h"
#include "common/proxy/cache_growing.h"
#include "common/proxy/cache_invalidate.h"
#include "common/proxy/cache_status.h"
#include "common/proxy/cache_update.h"
#include "common/proxy/stored_fields.h"
#include "common/proxy/vary.h"

#include <stdlib.h>

/* Room for the field that says which part a response is. */
#define SPAN_ROOM 128

/* ---- an entry that grows ---- */

void cache_store_show(struct cache_store *store, const struct fetch *fetch)
{
    const struct parsed_response *head = &fetch->connection.response;
    struct cache_lookup *lookup = store->lookup;

    if (!store->storing || !store->fresh || !collapse_is_held(&lookup->collapse) ||
        store->writer.holds || !cache_writer_name(lookup->cache, &store->writer))
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

/* Returns true if the response is a part that can be stored. It is then judged as a 200 would be.
 * If there is an entry, nobody needs its parts. */
static bool is_part(const struct cache_lookup *lookup, const struct parsed_response *head,
                    struct cache_span *span)
{
    return head->status == 206 && head->framing == FRAMING_LENGTH &&
           !cache_lookup_has_entry(lookup) && cache_part_read_span(head->fields, span) &&
           span->range.end - span->range.first == head->content_length &&
           head->content_length <= CACHE_PART_LIMIT && cache_part_tag(head->fields).length > 0 &&
           !fields_has(head->fields, TEXT("Vary"));
}

static bool may_store(struct cache_store *store, const struct parsed_response *head,
                      const struct service_call *call)
{
    const struct cache_lookup *lookup = store->lookup;
    struct cached_response response;
    struct cache_span span;

    if (!(lookup->may_store || store->for_later) ||
        (head->has_length && head->content_length > lookup->cache->limit / 2))
        return false;
    if (head->status >= 400 && freshness_has_credentials(call->request->fields))
        return false;
    cache_lookup_read(
        lookup, &response,
        &(struct cache_record){.status = is_part(lookup, head, &span) ? 200 : head->status,
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
    const struct parsed_response *head = &fetch->connection.response;
    struct cached_response response;

    if (call->request->method != METHOD_POST || head->status != 200 ||
        cache_uri_removed_since(lookup->cache, lookup->uri, lookup->removals) ||
        !cache_invalidate_is_about_target(lookup, fetch))
        return false;
    cache_lookup_read(lookup, &response,
                      &(struct cache_record){.status = head->status, .fields = head->fields});
    return freshness_is_explicit(&response);
}

/* Finds a stored part to join with the new one, and enlarges the span to that of both. */
static void join(struct cache_store *store, const struct parsed_response *head,
                 struct cache_span *span)
{
    struct cache_lookup *lookup = store->lookup;
    const struct range own = span->range, *old = &lookup->part.span.range;
    uint64_t begin = cache_lookup_wants_rest(lookup) ? lookup->wanted.first : own.first;

    if (!cache_lookup_wants_rest(lookup))
        cache_part_open(lookup->cache, &lookup->part, lookup->uri);
    if (!cache_part_joins(&lookup->part, span, head->fields)) {
        cache_part_close(&lookup->part);
        return;
    }
    if (old->first < own.first)
        span->range.first = old->first;
    if (old->end > own.end) {
        span->range.end = old->end;
        store->tail = (struct range){own.end, old->end};
    }
    store->before = begin - span->range.first;
    store->ready = own.first - begin;
}

/* Returns true if the body is held in memory while it comes. A part may be joined with others. */
static bool is_held(const struct parsed_response *head)
{
    return head->status != 206 && head->framing == FRAMING_LENGTH &&
           head->content_length <= CACHE_STORE_HELD_BYTES;
}

/* Begins an entry, with the bytes of the old part that stand before those of the origin. */
static bool begin_entry(struct cache_store *store, const struct fetch *fetch,
                        const struct cache_record *record, const struct service_call *call)
{
    const struct cache_lookup *lookup = store->lookup;
    const struct text fields = call->request->fields;
    const uint64_t first = lookup->part.span.range.first;
    const struct range head = {first, first + store->before + store->ready};

    if (is_held(&fetch->connection.response))
        return cache_writer_begin_short(lookup->cache, &store->writer, record, fields,
                                        (size_t)fetch->connection.response.content_length);
    if (!cache_writer_begin(lookup->cache, &store->writer, record, fields))
        return false;
    if (head.first == head.end ||
        cache_part_copy(lookup->cache, &lookup->part, &store->writer, head))
        return true;
    cache_writer_end(lookup->cache, &store->writer);
    return false;
}

static bool begin(struct cache_store *store, const struct fetch *fetch,
                  const struct service_call *call)
{
    const struct parsed_response *head = &fetch->connection.response;
    const struct cache_lookup *lookup = store->lookup;
    size_t room = head->fields.length + SPAN_ROOM;
    struct cache_record record = {.uri = lookup->uri,
                                  .reason = head->reason,
                                  .status = head->status,
                                  .minor = head->minor,
                                  .requested = lookup->requested,
                                  .received = call->now.seconds,
                                  .removals = lookup->removals};
    struct buffer fields = {.data = malloc(2 * room), .capacity = room}, list;
    struct cache_span span;
    bool part = is_part(lookup, head, &span), begun;

    store->before = store->ready = 0;
    store->tail = (struct range){0};
    if (fields.data == NULL)
        return false;
    list = (struct buffer){.data = fields.data + room, .capacity = room};
    stored_fields_write(head->fields, part ? CACHE_PART_FIELD : (struct text){0}, &fields);
    if (part) {
        join(store, head, &span);
        cache_part_write_span(&span, &fields);
    }
    vary_write_list(head->fields, &list);
    record.fields = (struct text){fields.data, fields.length};
    record.list = (struct text){list.data, list.length};
    begun = begin_entry(store, fetch, &record, call);
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
    const struct parsed_response *head = &fetch->connection.response;

    if (lookup->cache == NULL || lookup->uri.data == NULL)
        return;
    store->for_later = is_for_later(lookup, fetch, call);
    cache_invalidate(lookup, fetch, call->request->method);
    if (store->for_later)
        lookup->removals = cache_uri_removals(lookup->cache, lookup->uri);
    if (call->request->method == METHOD_HEAD && cache_lookup_has_entry(lookup))
        cache_update_by_head(lookup, fetch, call);
    store->storing = may_store(store, head, call) && begin(store, fetch, call);
    if (!store->storing) {
        pass(lookup, head->status, call);
        return;
    }
    fetch->writer.file = store->writer.file;
    fetch->writer.file_start = store->writer.start + store->before;
    fetch->writer.file_end = store->ready;
}

/* ---- the body ---- */

/* If the disk is full or the response too large, the client gets the stored part from the file, and
 * the rest without the cache. */
static void give_up(struct cache_store *store, const struct service_call *call)
{
    end_growing(store, false);
    store->storing = false;
    note_bypass(store->lookup, call->now);
    collapse_unlock(&store->lookup->collapse);
}

/* Sends the held bytes to the client from memory: from the file, which has just been written, 100
 * kB would take 20 us more. */
static void pass_on_held(const struct cache_store *store, struct fetch *fetch)
{
    struct text held = cache_writer_held(&store->writer);

    if (held.length > 0)
        fetch->writer.data = held;
}

void cache_store_release(struct cache_store *store, struct fetch *fetch)
{
    struct response_writer *writer = &fetch->writer;
    size_t held = cache_writer_held(&store->writer).length;

    if (!store->stored || held == 0 || writer->data.length == 0)
        return;
    writer->file_end = held;
    writer->offset = held - writer->data.length;
    writer->data = (struct text){0};
    cache_writer_forget(&store->writer);
}

void cache_store_flush(struct cache_store *store, struct fetch *fetch,
                       const struct service_call *call)
{
    size_t held = cache_writer_held(&store->writer).length;

    if (!store->storing || !store->writer.holds || held == 0)
        return;
    if (cache_writer_flush(store->lookup->cache, &store->writer)) {
        fetch->writer.file_end += held;
        return;
    }
    give_up(store, call);
    pass_on_held(store, fetch);
}

bool cache_store_add(struct cache_store *store, struct fetch *fetch,
                     const struct service_call *call, struct text data)
{
    struct cache_lookup *lookup = store->lookup;

    if (store->storing && cache_writer_add(lookup->cache, &store->writer, data)) {
        if (!store->writer.holds)
            fetch->writer.file_end += data.length;
        if (collapse_is_held(&lookup->collapse))
            fetch_lock_note_progress(lookup->cache, lookup->name, call->now.milliseconds);
        return true;
    }
    fetch->writer.data = data;
    if (store->storing) {
        give_up(store, call);
        pass_on_held(store, fetch);
    }
    return false;
}

/* Adds the bytes of the old part that stand behind those of the origin. */
static bool add_tail(struct cache_store *store)
{
    const struct cache_lookup *lookup = store->lookup;

    return store->tail.end == 0 ||
           cache_part_copy(lookup->cache, &lookup->part, &store->writer, store->tail);
}

void cache_store_finish(struct cache_store *store, struct fetch *fetch, struct moment now,
                        bool whole)
{
    struct cache_lookup *lookup = store->lookup;
    bool told = end_growing(store, whole);
    bool stored = told && store->storing && whole && add_tail(store) &&
                  cache_writer_commit(lookup->cache, &store->writer);

    if (store->storing)
        pass_on_held(store, fetch);
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
        .origin_status = fetch->connection.response.status,
        .stored = store->storing,
    };

    if (store->lookup->cache != NULL)
        cache_status_write(&status, lines);
}
