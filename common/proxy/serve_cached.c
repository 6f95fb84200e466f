/* Serves entries of the cache: hands them to the connection, or sends a stale one itself and has
 * the origin asked afterwards. */
#include "common/proxy/serve_cached.h"

#include "common/http/fields.h"
#include "common/proxy/cache_counters.h"
#include "common/proxy/cache_growing.h"
#include "common/proxy/cache_status.h"
#include "common/proxy/proxy_setup.h"
#include "common/proxy/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* ---- the fields ---- */

/* Returns true if no-cache may name some of the fields: few responses have that, and to look for
 * each field takes long. */
static bool names_fields(struct text fields)
{
    struct cache_control control;

    cache_control_read(fields, false, &control);
    return control.no_cache_fields;
}

/* Writes the fields of an entry for the client. Content-Type is left out: in a multipart response
 * it belongs to the parts. So is Content-Range, which is that of a part in the cache. Fields that
 * no-cache names are left out unless the origin has validated them. */
static void write_fields(struct text fields, bool validated, struct buffer *lines)
{
    bool all = validated || !names_fields(fields);
    struct text name, value;
    size_t from = 0;

    while (fields_next(fields, &from, &name, &value))
        if (!text_same(name, TEXT("Content-Type")) && !text_same(name, TEXT("Age")) &&
            !text_same(name, TEXT("Content-Range")) &&
            (all || !cache_control_names(fields, TEXT("no-cache"), name)))
            fields_add(lines, name, value);
}

static bool find_type(struct text fields, bool validated, struct text *type)
{
    return fields_first(fields, TEXT("Content-Type"), type) &&
           (validated || !cache_control_names(fields, TEXT("no-cache"), TEXT("Content-Type")));
}

static void write_length(struct buffer *lines, struct text name, uint64_t length)
{
    buffer_add(lines, name);
    buffer_number(lines, length);
    buffer_add(lines, TEXT("\r\n"));
}

/* Writes Age, Via and Cache-Status. Age says that the origin has not validated the entry just now
 * (RFC 9111, section 5.1). */
static void write_state(const struct cache_lookup *lookup, const struct cache_record *record,
                        const struct service_call *call, int origin_status, struct buffer *lines)
{
    const struct proxy *proxy = call->context->state;
    int64_t age = freshness_age(&lookup->cached, call->now.seconds);
    int64_t seconds_left = freshness_lifetime(&lookup->cached) - age;
    bool asked = origin_status != SERVE_CACHED_NOT_ASKED;
    const struct cache_status status = {
        .forward = asked || lookup->collapse.waited ? lookup->reason : NULL,
        .origin_status = asked ? origin_status : 0,
        .collapsed = !asked && lookup->collapse.waited,
        .seconds_left = &seconds_left,
    };

    if (origin_status != 304 || lookup->cached.age > 0)
        write_length(lines, TEXT("Age: "), (uint64_t)age);
    rewrite_via(record->minor, text_of(proxy->name), lines);
    cache_status_write(&status, lines);
}

/* ---- counting ---- */

/* Returns the bytes of the body that go to the client. */
static uint64_t length_of(const struct response *response, const struct request *request)
{
    bool bodiless = request->method == METHOD_HEAD || response->status == 304 ||
                    response->status == 412 || response->status == 416;

    return bodiless ? 0 : response_length(response);
}

static void count(const struct cache_lookup *lookup, const struct service_call *call,
                  int origin_status)
{
    enum cache_counter counter = origin_status == 304      ? CACHE_REVALIDATIONS
                                 : lookup->collapse.waited ? CACHE_COLLAPSED
                                                           : CACHE_HITS;

    cache_counters_note(call->context, counter,
                        call->client_gone ? 0 : length_of(call->response, call->request));
}

/* ---- a response of the connection ---- */

/* Returns true for fields of the stored body, which a 304 does not carry. */
static bool describes_body(struct text name)
{
    return text_same(name, TEXT("Content-Encoding")) || text_same(name, TEXT("Content-Language")) ||
           text_same(name, TEXT("Content-Range"));
}

static void drop_description(struct response *response)
{
    struct text fields = {response->fields, response->fields_length}, name, value;
    size_t from = 0, begin = 0, length = 0;

    for (; fields_next(fields, &from, &name, &value); begin = from) {
        if (describes_body(name))
            continue;
        memmove(response->fields + length, response->fields + begin, from - begin);
        length += from - begin;
    }
    response->fields_length = length;
}

/* Copies a text behind the lines, where it lives as long as they do. */
static struct text copy(struct buffer *lines, struct text text)
{
    struct text copied = {lines->data + lines->length, text.length};

    buffer_add(lines, text);
    return copied;
}

static uint64_t check_body(const void *owner, uint64_t offset, uint64_t wanted)
{
    return block_checksums_check(owner, offset, wanted);
}

/* Moves the body out of the entry. Returns false if there is no memory. */
static bool take_body(const struct cache *cache, struct cache_entry *entry, struct body *taken)
{
    struct cache_body *checked;
    struct body body = {.kind = BODY_FILE,
                        .length = entry->record.length,
                        .file = entry->file,
                        .start = entry->start};

    if (entry->body.data != NULL) {
        body.kind = BODY_MEMORY;
        body.memory = entry->body.data;
        body.release = free;
        body.owner = entry->space;
        body.file = -1;
        entry->space = NULL;
    } else {
        checked = malloc(sizeof *checked);
        if (checked == NULL)
            return false;
        *checked = cache_entry_body(cache, entry);
        body.check = check_body;
        body.release = free;
        body.owner = checked;
        entry->file = -1;
    }
    *taken = body;
    return true;
}

/* Returns false if the first bytes that would be sent are damaged. Nothing of the response has left
 * yet: the origin can be asked. */
static bool is_sound(const struct response *response, const struct request *request)
{
    const struct body *body = &response->body;
    uint64_t first = response->range_count > 0 ? response->ranges[0].first : 0;

    return body->kind != BODY_FILE || body->check == NULL || request->method == METHOD_HEAD ||
           body->length == 0 || body->check(body->owner, first, 1) > 0;
}

static void set_validators(struct response *response, const struct cached_response *cached,
                           struct buffer *lines)
{
    struct text etag = copy(lines, cached->etag);

    response->etag = (struct buffer){.data = lines->data + (etag.data - lines->data),
                                     .capacity = etag.length,
                                     .length = etag.length};
    response->has_validators = true;
    response->modified = cached->has_modified ? cached->modified : cached->date;
}

/* Describes the response with the fields of an entry. Returns false if there is no memory. */
static bool describe(const struct cache_lookup *lookup, const struct cache_record *record,
                     const struct service_call *call, struct text fields, int origin_status)
{
    const bool validated = origin_status == 304;
    struct response *response = call->response;
    size_t room = fields.length + lookup->cached.etag.length + record->reason.length + 1024;
    struct buffer lines = {.data = malloc(room), .capacity = room};
    struct text type;

    if (lines.data == NULL)
        return false;
    response_start(response);
    write_fields(fields, validated, &lines);
    write_state(lookup, record, call, origin_status, &lines);
    response->fields = lines.data;
    response->fields_length = lines.length;
    response->status = record->status;
    response->reason = copy(&lines, record->reason);
    if (find_type(fields, validated, &type))
        response->type = copy(&lines, type);
    set_validators(response, &lookup->cached, &lines);
    return true;
}

enum service_progress serve_cached_respond(struct cache_lookup *lookup, struct service_call *call,
                                           struct text fields, int origin_status)
{
    struct response *response = call->response;
    struct moment dated = {.seconds = lookup->cached.date};

    if (!describe(lookup, &lookup->entry.record, call, fields, origin_status))
        return stage_refuse(call, 503, "The proxy has no memory for this request.");
    cache_entry_touch(lookup->cache, &lookup->entry);
    if (!take_body(lookup->cache, &lookup->entry, &response->body)) {
        response_end(response);
        return stage_refuse(call, 503, "The proxy has no memory for this request.");
    }
    response_apply_conditions(response, call->request, dated);
    if (response->status == 304)
        drop_description(response);
    count(lookup, call, origin_status);
    return SERVICE_RESPONDS;
}

enum service_progress serve_cached_run(struct cache_lookup *lookup, struct service_call *call)
{
    enum service_progress progress =
        serve_cached_respond(lookup, call, lookup->entry.record.fields, SERVE_CACHED_NOT_ASKED);

    if (progress != SERVICE_RESPONDS || is_sound(call->response, call->request))
        return progress;
    response_end(call->response);
    response_start(call->response);
    cache_lookup_drop_entry(lookup);
    lookup->may_use = false; /* it may not have been possible to remove it */
    lookup->reason = "uri-miss";
    return stage_go_to(call, STAGE_LOOKUP);
}

/* ---- a part ---- */

/* The bytes of the part are counted in the whole body. */
struct part_body {
    struct cache_body body;
    uint64_t first;
};

static uint64_t check_part(const void *owner, uint64_t offset, uint64_t wanted)
{
    const struct part_body *part = owner;

    return block_checksums_check(&part->body, offset - part->first, wanted);
}

/* Moves the body out of the part. It begins in the file where the whole body would: that may be
 * before the file begins, and nobody reads there. Returns false if there is no memory. */
static bool take_part(const struct cache *cache, struct cache_part *part, struct body *taken)
{
    struct part_body *checked = malloc(sizeof *checked);

    if (checked == NULL)
        return false;
    *checked = (struct part_body){cache_entry_body(cache, &part->entry), part->span.range.first};
    *taken = (struct body){
        .kind = BODY_FILE,
        .length = part->span.whole,
        .file = part->entry.file,
        .start = part->entry.start - part->span.range.first,
        .check = check_part,
        .release = free,
        .owner = checked,
    };
    part->entry.file = -1;
    return true;
}

/* Describes the response as if the whole body were there. Returns true if it is one range, which
 * begins in the part, and sets `*range`. */
static bool try_part(const struct cache_lookup *lookup, struct service_call *call,
                     struct range *range)
{
    const struct cache_part *part = &lookup->part;
    const struct cache_record *record = &part->entry.record;
    struct response *response = call->response;

    if (!describe(lookup, record, call, record->fields, SERVE_CACHED_NOT_ASKED))
        return false;
    response->status = 200;
    response->reason = (struct text){0};
    response->body.length = part->span.whole;
    response_apply_conditions(response, call->request,
                              (struct moment){.seconds = lookup->cached.date});
    if (response->status != 206 || response->range_count != 1)
        return false;
    *range = response->ranges[0];
    return range->first >= part->span.range.first && range->first < part->span.range.end;
}

/* Gives the response its body. Returns false if there is no memory, or if the first bytes that
 * would be sent are damaged. */
static bool add_part(struct cache_lookup *lookup, struct service_call *call)
{
    cache_entry_touch(lookup->cache, &lookup->part.entry);
    return take_part(lookup->cache, &lookup->part, &call->response->body) &&
           is_sound(call->response, call->request);
}

/* Where the part ends before the range does, the origin is asked for the rest. */
enum service_progress serve_cached_part(struct cache_lookup *lookup, struct service_call *call)
{
    const struct range *held = &lookup->part.span.range;
    struct range range;
    bool begins = try_part(lookup, call, &range);

    if (begins && range.end <= held->end && add_part(lookup, call)) {
        count(lookup, call, SERVE_CACHED_NOT_ASKED);
        return SERVICE_RESPONDS;
    }
    response_end(call->response);
    response_start(call->response);
    if (begins && range.end > held->end && lookup->may_store && !lookup->control.only_if_cached) {
        lookup->wanted = range;
        lookup->reason = "partial";
        return stage_go_to(call, STAGE_OPEN);
    }
    cache_lookup_drop_part(lookup);
    return stage_go_to(call, STAGE_LOOKUP);
}

/* ---- a stale entry, before the origin is asked ---- */

/* The length of an entry that grows may be unknown. For HTTP/1.0, the body then ends with the
 * connection. */
static void choose_framing(uint64_t length, struct response_writer *writer,
                           struct service_call *call)
{
    bool chunks = call->request->minor >= 1 && call->context->protocol != PROTOCOL_SIMPLE;

    writer->framing = length != CACHE_GROWING_UNKNOWN ? FRAMING_LENGTH
                      : chunks                        ? FRAMING_CHUNKED
                                                      : FRAMING_NONE;
    if (writer->framing == FRAMING_LENGTH)
        write_length(&writer->lines, TEXT("Content-Length: "), length);
    else if (chunks)
        buffer_add(&writer->lines, TEXT("Transfer-Encoding: chunked\r\n"));
    else
        call->keeps_connection = false;
}

void serve_cached_write_head(const struct cache_lookup *lookup, struct response_writer *writer,
                             struct service_call *call)
{
    const struct cache_record *record = &lookup->entry.record;
    struct buffer *lines = &writer->lines;
    struct text type;

    response_writer_start(writer);
    response_writer_add_status(writer, call, record->status, record->reason);
    write_fields(record->fields, false, lines);
    if (find_type(record->fields, false, &type))
        fields_add(lines, TEXT("Content-Type"), type);
    write_state(lookup, record, call, SERVE_CACHED_NOT_ASKED, lines);
    if (record->status == 204)
        writer->framing = FRAMING_LENGTH;
    else
        choose_framing(record->length, writer, call);
    response_writer_end_head(writer, call);
    writer->file = lookup->entry.file;
    writer->file_start = lookup->entry.start;
}

static void write_stale(const struct cache_lookup *lookup, struct fetch *fetch,
                        struct service_call *call)
{
    struct response_writer *writer = &fetch->writer;

    serve_cached_write_head(lookup, writer, call);
    if (writer->file >= 0)
        writer->file_end = lookup->entry.record.length;
    else
        writer->data = lookup->entry.body;
    writer->complete = true;
    fetch->stale = cache_entry_body(lookup->cache, &lookup->entry);
    writer->checked = &fetch->stale;
}

enum service_progress serve_cached_stale(struct cache_store *store, struct fetch *fetch,
                                         struct service_call *call)
{
    struct cache_lookup *lookup = store->lookup;
    enum service_progress progress;

    if (!fetch->writer.complete)
        write_stale(lookup, fetch, call);
    progress = send_response_run(store, fetch, call);
    if (progress == SERVICE_WAITS) {
        collapse_suspend(&lookup->collapse); /* other requests must not wait for this client */
        return progress;
    }
    if (progress != SERVICE_DONE)
        call->keeps_connection = false; /* the client must not take what follows for the rest */
    else if (!response_writer_keeps_connection(call))
        call->client->kind->finish(call->client);
    cache_counters_note(call->context, CACHE_HITS, call->body_bytes);
    cache_entry_touch(lookup->cache, &lookup->entry);
    fetch->served = lookup->entry.record.status;
    call->client_gone = true;
    return collapse_resume(&lookup->collapse) ? stage_go_to(call, STAGE_OPEN) : progress;
}
