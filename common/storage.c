/* How a passage uses the store: what it finds there, and what it keeps. */
#include "common/fields.h"
#include "common/passage.h"

#include <stdlib.h>
#include <string.h>

/* How long, beyond the time that the origin has, to wait for a reply that somebody else fetches,
 * before it is fetched once more; and how often to look. */
#define FOLLOW_MILLISECONDS 5000
#define FIRST_WAIT          2
#define MOST_WAIT           32

#define NAME TEXT("fork-vs-thread")

/* ---- the beginning and the end ---- */

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

static void drop_entry(struct passage *passage)
{
    cache_leave(&passage->entry);
    passage->validates = false;
}

static void give_way(struct passage *passage)
{
    cache_unlock(passage->lock);
    passage->lock = -1;
}

void storage_end(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->cache != NULL)
        cache_end(passage->cache, &passage->writer);
    drop_entry(passage);
    give_way(passage);
    free((char *)(uintptr_t)passage->uri.data);
}

/* ---- answering from the store ---- */

/* The fields of a stored reply, as they go to the client; its type is left out, since parts of the
 * body may need it. */
static void write_fields(struct text fields, bool unvalidated, struct buffer *lines)
{
    struct text name, value;
    size_t from = 0;

    while (fields_next(fields, &from, &name, &value))
        if (!text_same(name, TEXT("Content-Type")) && !text_same(name, TEXT("Age")) &&
            !(unvalidated && policy_names(fields, TEXT("no-cache"), name)))
            fields_add(lines, name, value);
}

static void add_parameter(struct buffer *lines, const char *name, int64_t number)
{
    buffer_string(lines, name);
    if (number < 0)
        buffer_character(lines, '-');
    buffer_number(lines, (uint64_t)(number < 0 ? -number : number));
}

/* What is said about a reply from the store. `status` is that of the origin's reply which led to
 * it; 0: it did not answer; -1: it was not asked. */
static void write_state(const struct errand *errand, int status, struct buffer *lines)
{
    const struct passage *passage = errand->work;
    int64_t age = policy_age(&passage->kept, errand->now.seconds);

    add_parameter(lines, "Age: ", age);
    buffer_add(lines, TEXT("\r\n"));
    forward_via(passage->entry.record.minor, text_of(passage->proxy->name), lines);
    buffer_add(lines, TEXT("Cache-Status: "));
    buffer_add(lines, NAME);
    if (status < 0 && !passage->followed) {
        buffer_add(lines, TEXT("; hit"));
    } else {
        buffer_add(lines, TEXT("; fwd="));
        buffer_string(lines, passage->why);
        if (status > 0)
            add_parameter(lines, "; fwd-status=", status);
        if (status < 0)
            buffer_add(lines, TEXT("; collapsed"));
    }
    add_parameter(lines, "; ttl=", policy_lifetime(&passage->kept) - age);
    buffer_add(lines, TEXT("\r\n"));
}

/* Copies a text behind the lines, where it stays as long as they do. */
static struct text copy(struct buffer *lines, struct text text)
{
    struct text copied = {lines->data + lines->length, text.length};

    buffer_add(lines, text);
    return copied;
}

/* Hands the body over to the reply: it lets go of it. */
static struct body take_body(struct cache_entry *entry)
{
    struct body body = {.kind = BODY_FILE,
                        .length = entry->record.length,
                        .file = entry->file,
                        .start = entry->start};

    if (entry->body.data != NULL) {
        body.kind = BODY_MEMORY;
        body.memory = entry->body.data;
        body.owned = entry->space;
        body.file = -1;
        entry->space = NULL;
    } else {
        entry->file = -1;
    }
    return body;
}

/* Answers with the entry; its fields may have been updated since it was stored. */
static enum progress answer(struct errand *errand, struct text fields, int status)
{
    struct passage *passage = errand->work;
    struct response *response = errand->response;
    const struct cache_record *record = &passage->entry.record;
    struct moment dated = {.seconds = passage->kept.date};
    size_t room = fields.length + record->reason.length + 1024;
    struct buffer lines = {.data = malloc(room), .capacity = room};
    struct text type;

    if (lines.data == NULL)
        return passage_refuse(errand, 503, "The proxy has no memory for this request.");
    response_start(response);
    write_fields(fields, status != 304, &lines);
    write_state(errand, status, &lines);
    response->fields = lines.data;
    response->fields_length = lines.length;
    response->status = record->status;
    response->reason = copy(&lines, record->reason);
    if (fields_first(fields, TEXT("Content-Type"), &type))
        response->type = copy(&lines, type);
    type = copy(&lines, passage->kept.etag);
    response->etag = (struct buffer){.data = lines.data + (type.data - lines.data),
                                     .capacity = type.length,
                                     .length = type.length};
    response->has_validators = true;
    response->modified = passage->kept.has_modified ? passage->kept.modified : passage->kept.date;
    cache_touch(&passage->entry);
    response->body = take_body(&passage->entry);
    response_settle(response, errand->request, dated);
    return ERRAND_ANSWERED;
}

/* ---- looking ---- */

/* Asks the origin, as the first one or after all. */
static enum progress ask(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->asked.only_if_cached)
        return passage_refuse(errand, 504, "The proxy has no stored reply that could be used.");
    passage->stage = STAGE_OPENING;
    return ERRAND_GOES_ON;
}

/* Whether what the origin will say could be for others, too. */
static bool is_shareable(const struct errand *errand)
{
    const struct passage *passage = errand->work;
    struct text fields = errand->request->fields;

    return passage->writes && !passage->asked.no_cache && !passage->asked.only_if_cached &&
           !passage->kept.directives.no_cache && !fields_has(fields, TEXT("Authorization")) &&
           (passage->validates || !fields_has(fields, TEXT("Range"))) &&
           !cache_passes(passage->cache, passage->name, errand->now.seconds);
}

static enum progress wait_for_other(struct errand *errand)
{
    struct passage *passage = errand->work;
    int64_t now = errand->now.milliseconds;

    if (passage->follow_until == 0) {
        passage->follow_until = now + passage->proxy->timeout + FOLLOW_MILLISECONDS;
        passage->follow_wait = FIRST_WAIT;
    } else if (passage->follow_wait < MOST_WAIT) {
        passage->follow_wait *= 2;
    }
    passage->followed = true;
    drop_entry(passage);
    errand->descriptor = -1;
    errand->deadline = now + passage->follow_wait;
    return ERRAND_WAITS;
}

/* One asks, and all others wait for what it gets. */
static enum progress ask_alone(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->lock >= 0 || !is_shareable(errand) ||
        (passage->follow_until != 0 && errand->now.milliseconds >= passage->follow_until)) {
        passage->followed = false;
        return ask(errand);
    }
    passage->lock = cache_lock(passage->cache, passage->name);
    if (passage->lock < 0)
        return wait_for_other(errand);
    drop_entry(passage); /* and look again: it may have come just now */
    return ERRAND_GOES_ON;
}

static void read_entry(struct passage *passage)
{
    const struct cache_record *record = &passage->entry.record;

    policy_read(&passage->kept, record->status, record->fields, record->requested,
                record->received);
}

/* Whether the client asks for the whole reply, whatever it has. */
static bool is_plain(const struct errand *errand)
{
    const uint32_t conditions = 1U << FIELD_RANGE | 1U << FIELD_IF_NONE_MATCH |
                                1U << FIELD_IF_MODIFIED_SINCE | 1U << FIELD_IF_RANGE;

    return errand->request->method == METHOD_GET && !(errand->request->present & conditions);
}

/* What is stale is served at once, and asked about behind that: by one of those who get it. */
static enum progress serve_meanwhile(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (is_plain(errand) && is_shareable(errand) && passage->lock < 0) {
        passage->lock = cache_lock(passage->cache, passage->name);
        if (passage->lock >= 0) {
            passage->stage = STAGE_SERVING;
            return ERRAND_GOES_ON;
        }
    }
    return answer(errand, passage->entry.record.fields, -1);
}

static enum progress use_entry(struct errand *errand)
{
    struct passage *passage = errand->work;

    read_entry(passage);
    switch (policy_judge(&passage->kept, &passage->asked, errand->now.seconds)) {
    case POLICY_FRESH:
    case POLICY_STALE:
        give_way(passage);
        return answer(errand, passage->entry.record.fields, -1);
    case POLICY_MEANTIME:
        return serve_meanwhile(errand);
    case POLICY_VALIDATE:
        break;
    }
    passage->why = policy_lifetime(&passage->kept) > policy_age(&passage->kept, errand->now.seconds)
                       ? "request"
                       : "stale";
    passage->validates = passage->kept.etag.length > 0 || passage->kept.has_modified;
    return ask_alone(errand);
}

enum progress storage_look(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum cache_found found;

    if (!passage->reads)
        return ask(errand);
    found = cache_find(passage->cache, passage->uri, errand->request->fields, &passage->entry,
                       passage->name);
    if (found == CACHE_FOUND && !cache_verify(passage->cache, &passage->entry)) {
        drop_entry(passage);
        found = CACHE_NOTHING;
    }
    if (found == CACHE_FOUND)
        return use_entry(errand);
    passage->kept.directives.no_cache = false;
    passage->why = found == CACHE_OTHER ? "vary-miss" : "uri-miss";
    return ask_alone(errand);
}

/* ---- stale while it is asked about ---- */

static void write_stale(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct cache_record *record = &passage->entry.record;
    struct delivery *delivery = &passage->fetch->delivery;
    struct buffer *lines = &delivery->lines;
    struct text type;

    delivery_start(delivery);
    passage_write_status(errand, record->status, record->reason, lines);
    write_fields(record->fields, true, lines);
    if (fields_first(record->fields, TEXT("Content-Type"), &type))
        fields_add(lines, TEXT("Content-Type"), type);
    write_state(errand, -1, lines);
    if (record->status != 204)
        add_parameter(lines, "Content-Length: ", (int64_t)record->length);
    buffer_add(lines, record->status != 204 ? TEXT("\r\n") : TEXT(""));
    passage_write_persistence(errand, lines);
    delivery->file = passage->entry.file;
    delivery->file_start = passage->entry.start;
    delivery->file_end = record->length;
    delivery->framing = FRAMING_LENGTH;
    delivery->complete = true;
}

enum progress storage_serve(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum progress progress;

    if (passage->fetch == NULL) {
        if (errand->behind)
            return ERRAND_BEHIND;
        if (!passage_make_fetch(errand))
            return passage_refuse(errand, 503, "The proxy has no memory for this request.");
        write_stale(errand);
    }
    progress = passage_deliver(errand);
    if (progress == ERRAND_WAITS)
        return progress;
    if (progress == ERRAND_DONE && !passage_goes_on(errand))
        errand->client->kind->finish(errand->client);
    cache_touch(&passage->entry);
    passage->background = true;
    passage->served = passage->entry.record.status;
    passage->validates = passage->kept.etag.length > 0 || passage->kept.has_modified;
    errand->client_gone = true;
    passage->stage = STAGE_OPENING;
    return ERRAND_GOES_ON;
}

/* ---- what the origin says ---- */

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
    policy_read(reply, record->status, record->fields, record->requested, record->received);
    return true;
}

/* Stores the entry anew with other fields, if it may still be stored. */
static void renew(struct errand *errand, struct cache_record *record,
                  const struct policy_reply *reply)
{
    struct passage *passage = errand->work;
    size_t room = record->fields.length;
    struct buffer list = {.data = malloc(room), .capacity = room};

    if (list.data == NULL)
        return;
    policy_vary_list(record->fields, &list);
    record->list = (struct text){list.data, list.length};
    if (policy_may_store(reply, errand->request->fields, record->fields))
        cache_renew(passage->cache, &passage->entry, record, errand->request->fields);
    else if (!passage->asked.no_store)
        cache_remove(passage->cache, passage->uri);
    free(list.data);
}

enum progress storage_confirm(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct cache_record record;
    struct policy_reply reply;
    struct buffer merged;
    enum progress progress;

    if (!policy_confirms(passage->entry.record.fields, passage->fetch->upstream.reply.fields)) {
        cache_remove(passage->cache, passage->uri);
        drop_entry(passage);
        return passage_ask_again(errand);
    }
    if (!update(errand, &record, &merged, &reply))
        return passage_refuse(errand, 503, "The proxy has no memory for this request.");
    renew(errand, &record, &reply);
    give_way(passage);
    passage->kept = reply;
    passage->followed = false;
    progress = answer(errand, record.fields, 304);
    free(merged.data);
    return progress;
}

bool storage_bridge(struct errand *errand, int status)
{
    struct passage *passage = errand->work;

    if (passage->entry.space == NULL ||
        !policy_bridges_error(&passage->kept, &passage->asked, errand->now.seconds))
        return false;
    give_way(passage);
    passage->followed = false;
    return answer(errand, passage->entry.record.fields, status) == ERRAND_ANSWERED;
}

static bool is_safe(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_OPTIONS ||
           method == METHOD_TRACE;
}

/* Removes what a field of the reply names, if that is of the same origin. */
static void invalidate_named(struct errand *errand, struct text name)
{
    struct passage *passage = errand->work;
    struct text value, uri = passage->uri;
    size_t origin = 7 + text_find((struct text){uri.data + 7, uri.length - 7}, '/');
    struct buffer target;

    if (!fields_single(passage->fetch->upstream.reply.fields, name, &value) || value.length == 0)
        return;
    target =
        (struct buffer){.data = malloc(origin + value.length), .capacity = origin + value.length};
    if (target.data == NULL)
        return;
    if (value.data[0] == '/' && (value.length == 1 || value.data[1] != '/'))
        buffer_add(&target, (struct text){uri.data, origin});
    buffer_add(&target, (struct text){value.data, text_find(value, '#')});
    if (target.length > origin && target.data[origin] == '/' &&
        text_same((struct text){target.data, origin}, (struct text){uri.data, origin}))
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

/* A reply to HEAD says how the stored reply to GET would look now. */
static void compare_head(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct cache_record record;
    struct policy_reply reply;
    struct buffer merged;

    if (!policy_same_head(passage->entry.record.fields, passage->entry.record.length,
                          passage->fetch->upstream.reply.fields)) {
        cache_remove(passage->cache, passage->uri);
    } else if (update(errand, &record, &merged, &reply)) {
        renew(errand, &record, &reply);
        free(merged.data);
    }
}

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
                                  .received = errand->now.seconds};
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

static bool may_keep(const struct errand *errand)
{
    const struct passage *passage = errand->work;
    const struct reply *head = &passage->fetch->upstream.reply;
    struct policy_reply reply;

    if (!passage->writes || (head->has_length && head->content_length > passage->cache->limit / 2))
        return false;
    policy_read(&reply, head->status, head->fields, passage->requested, errand->now.seconds);
    return policy_may_store(&reply, errand->request->fields, head->fields);
}

void storage_take(struct errand *errand)
{
    struct passage *passage = errand->work;
    const struct reply *head = &passage->fetch->upstream.reply;
    bool found = passage->entry.space != NULL;

    if (passage->cache == NULL || passage->uri.data == NULL)
        return;
    if (!is_safe(errand->request->method) && head->status < 400)
        invalidate(errand);
    if (errand->request->method == METHOD_HEAD && head->status == 200 && found)
        compare_head(errand);
    passage->storing = may_keep(errand) && keep(errand);
    if (passage->storing) {
        struct delivery *delivery = &passage->fetch->delivery;
        delivery->file = passage->writer.file;
        delivery->file_start = passage->writer.start;
        return;
    }
    if (found && passage->writes && head->status < 500 && head->status != 304 &&
        head->status != 206)
        cache_remove(passage->cache, passage->uri); /* it is not what the origin has now */
    if (passage->lock >= 0 && head->status != 304)
        cache_pass(passage->cache, passage->name, errand->now.seconds);
    give_way(passage);
}

bool storage_add(struct errand *errand, struct text data)
{
    struct passage *passage = errand->work;

    if (!passage->storing)
        return false;
    if (cache_write(passage->cache, &passage->writer, data)) {
        passage->fetch->delivery.file_end += data.length;
        return true;
    }
    /* The disk is full, or the reply too large: what is in the file goes to the client, and then
     * all else without it. */
    passage->storing = false;
    cache_pass(passage->cache, passage->name, errand->now.seconds);
    give_way(passage);
    return false;
}

void storage_finish(struct errand *errand, bool whole)
{
    struct passage *passage = errand->work;

    if (passage->storing && whole)
        cache_commit(passage->cache, &passage->writer);
    passage->storing = false;
    give_way(passage);
}

void storage_describe(const struct errand *errand, struct buffer *lines)
{
    const struct passage *passage = errand->work;

    if (passage->cache == NULL)
        return;
    buffer_add(lines, TEXT("Cache-Status: "));
    buffer_add(lines, NAME);
    buffer_add(lines, TEXT("; fwd="));
    buffer_string(lines, passage->why);
    add_parameter(lines, "; fwd-status=", passage->fetch->upstream.reply.status);
    if (passage->storing)
        buffer_add(lines, TEXT("; stored"));
    buffer_add(lines, TEXT("\r\n"));
}
