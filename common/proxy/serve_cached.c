#include "common/proxy/serve_cached.h"

#include "common/http/fields.h"
#include "common/proxy/relay.h"
#include "common/proxy/send_response.h"
#include "common/proxy/storage.h"

#include <stdlib.h>
#include <string.h>

/* The fields of a stored reply, as they go to the client; its type is left out, since parts of the
 * body may need it. */
static void write_fields(struct text fields, bool unvalidated, struct buffer *lines)
{
    struct text name, value;
    size_t from = 0;

    while (fields_next(fields, &from, &name, &value))
        if (!text_same(name, TEXT("Content-Type")) && !text_same(name, TEXT("Age")) &&
            !(unvalidated && freshness_names(fields, TEXT("no-cache"), name)))
            fields_add(lines, name, value);
}

/* The type, if it may be told. */
static bool find_type(struct text fields, bool unvalidated, struct text *type)
{
    return fields_first(fields, TEXT("Content-Type"), type) &&
           !(unvalidated && freshness_names(fields, TEXT("no-cache"), TEXT("Content-Type")));
}

/* Fields of the stored body, which a 304 does not bring. */
static bool describes_body(struct text name)
{
    return text_same(name, TEXT("Content-Encoding")) || text_same(name, TEXT("Content-Language")) ||
           text_same(name, TEXT("Content-Range"));
}

static void drop_description(struct response *response)
{
    struct text fields = {response->fields, response->fields_length}, name, value;
    size_t from = 0, begin = 0, kept = 0;

    for (; fields_next(fields, &from, &name, &value); begin = from) {
        if (describes_body(name))
            continue;
        memmove(response->fields + kept, response->fields + begin, from - begin);
        kept += from - begin;
    }
    response->fields_length = kept;
}

/* What is said about a reply from the store. `status` is that of the origin's reply which led to
 * it; 0: it did not answer; -1: it was not asked. */
static void write_state(const struct service_call *call, int status, struct buffer *lines)
{
    const struct proxy_request *proxied = call->work;
    int64_t age = freshness_age(&proxied->kept, call->now.seconds);

    /* Age says that the origin has not confirmed this just now (RFC 9111, section 5.1). */
    if (status != 304 || proxied->kept.age > 0) {
        storage_add_parameter(lines, "Age: ", age);
        buffer_add(lines, TEXT("\r\n"));
    }
    rewrite_via(proxied->entry.record.minor, text_of(proxied->proxy->name), lines);
    storage_begin_status(lines);
    if (status < 0 && !proxied->followed) {
        buffer_add(lines, TEXT("; hit"));
    } else {
        buffer_add(lines, TEXT("; fwd="));
        buffer_string(lines, proxied->why);
        if (status > 0)
            storage_add_parameter(lines, "; fwd-status=", status);
        if (status < 0)
            buffer_add(lines, TEXT("; collapsed"));
    }
    storage_add_parameter(lines, "; ttl=", freshness_lifetime(&proxied->kept) - age);
    buffer_add(lines, TEXT("\r\n"));
}

/* ---- as a response ---- */

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
        body.release = free;
        body.owner = entry->space;
        body.file = -1;
        entry->space = NULL;
    } else {
        entry->file = -1;
    }
    return body;
}

enum service_progress serve_cached_answer(struct service_call *call, struct text fields, int status)
{
    struct proxy_request *proxied = call->work;
    struct response *response = call->response;
    const struct cache_record *record = &proxied->entry.record;
    struct moment dated = {.seconds = proxied->kept.date};
    size_t room = fields.length + proxied->kept.etag.length + record->reason.length + 1024;
    struct buffer lines = {.data = malloc(room), .capacity = room};
    struct text type;

    if (lines.data == NULL)
        return relay_refuse(call, 503, "The proxy has no memory for this request.");
    response_start(response);
    write_fields(fields, status != 304, &lines);
    write_state(call, status, &lines);
    response->fields = lines.data;
    response->fields_length = lines.length;
    response->status = record->status;
    response->reason = copy(&lines, record->reason);
    if (find_type(fields, status != 304, &type))
        response->type = copy(&lines, type);
    type = copy(&lines, proxied->kept.etag);
    response->etag = (struct buffer){.data = lines.data + (type.data - lines.data),
                                     .capacity = type.length,
                                     .length = type.length};
    response->has_validators = true;
    response->modified = proxied->kept.has_modified ? proxied->kept.modified : proxied->kept.date;
    cache_entry_touch(&proxied->entry);
    response->body = take_body(&proxied->entry);
    response_apply_conditions(response, call->request, dated);
    if (response->status == 304)
        drop_description(response);
    return SERVICE_RESPONDS;
}

/* ---- before the origin is asked ---- */

static void write_stale(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    const struct cache_record *record = &proxied->entry.record;
    struct response_writer *writer = &proxied->fetch->writer;
    struct buffer *lines = &writer->lines;
    struct text type;

    response_writer_start(writer);
    relay_write_status(call, record->status, record->reason, lines);
    write_fields(record->fields, true, lines);
    if (find_type(record->fields, true, &type))
        fields_add(lines, TEXT("Content-Type"), type);
    write_state(call, -1, lines);
    if (record->status != 204)
        storage_add_parameter(lines, "Content-Length: ", (int64_t)record->length);
    buffer_add(lines, record->status != 204 ? TEXT("\r\n") : TEXT(""));
    relay_write_persistence(call, lines);
    writer->file = proxied->entry.file;
    writer->file_start = proxied->entry.start;
    writer->file_end = record->length;
    writer->framing = FRAMING_LENGTH;
    writer->complete = true;
}

/* A client that is slow keeps nobody else from asking the origin. */
static void step_aside(struct proxy_request *proxied)
{
    if (proxied->lock < 0)
        return;
    storage_give_way(proxied);
    proxied->moves = cache_lock_releases(proxied->cache, proxied->locked);
}

/* Whether nobody has asked the origin meanwhile. */
static bool is_still_first(struct proxy_request *proxied)
{
    return proxied->lock >= 0 ||
           (cache_lock_releases(proxied->cache, proxied->locked) == proxied->moves &&
            storage_lock(proxied));
}

enum service_progress serve_cached_run(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum service_progress progress;

    if (proxied->fetch == NULL) {
        if (call->output_pending)
            return SERVICE_NEEDS_FLUSH;
        if (!relay_make_fetch(call))
            return relay_refuse(call, 503, "The proxy has no memory for this request.");
        write_stale(call);
    }
    progress = send_response_run(call);
    if (progress == SERVICE_WAITS) {
        step_aside(proxied);
        return progress;
    }
    if (progress != SERVICE_DONE)
        call->keeps_connection =
            false; /* the client has a part of it, and must not take more for the rest */
    else if (!relay_goes_on(call))
        call->client->kind->finish(call->client);
    cache_entry_touch(&proxied->entry);
    proxied->background = true;
    proxied->served = proxied->entry.record.status;
    call->client_gone = true;
    if (!is_still_first(proxied))
        return progress;
    return relay_go_to(proxied, STAGE_OPENING);
}
