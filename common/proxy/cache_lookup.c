/* Looks for an entry that a request may use, and decides whether to ask the origin. */
#include "common/proxy/cache_lookup.h"

#include "common/http/fields.h"
#include "common/proxy/cache_growing.h"
#include "common/proxy/proxy_setup.h"

#include <stdlib.h>
#include <string.h>

/* ---- the request ---- */

/* A response may depend on what the proxy tells the origin about its client. So servers that tell
 * different things share no entry; nor do a forward proxy and a reverse proxy. */
static struct text server_kind(const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    bool tls = call->context->scheme == SCHEME_HTTPS;

    if (proxy->origin.length == 0)
        return TEXT("");
    if (proxy->forwarded_append)
        return tls ? TEXT("append+https+") : TEXT("append+http+");
    return tls ? TEXT("https+") : TEXT("http+");
}

static bool write_uri(struct cache_lookup *lookup, const struct origin *origin,
                      const struct service_call *call)
{
    const struct request *request = call->request;
    size_t room = origin->host.length + request->path.length + request->query.length + 48;
    struct buffer uri = {.data = malloc(room), .capacity = room};

    if (uri.data == NULL)
        return false;
    buffer_add(&uri, server_kind(call));
    buffer_add(&uri, TEXT("http://"));
    buffer_add(&uri, origin->host);
    for (size_t i = 0; i < uri.length; i++)
        if (uri.data[i] >= 'A' && uri.data[i] <= 'Z')
            uri.data[i] = (char)(uri.data[i] | 0x20);
    buffer_character(&uri, ':');
    buffer_number(&uri, origin->port);
    lookup->origin_length = uri.length;
    buffer_add(&uri, request->path);
    buffer_add(&uri, request->query);
    lookup->uri = (struct text){uri.data, uri.length};
    return true;
}

void cache_lookup_start(struct cache_lookup *lookup, const struct cache *cache)
{
    lookup->cache = cache;
    lookup->entry.file = -1;
    cache_part_start(&lookup->part);
    collapse_start(&lookup->collapse, cache);
}

bool cache_lookup_begin(struct cache_lookup *lookup, const struct origin *origin,
                        const struct service_call *call)
{
    const struct request *request = call->request;
    bool is_get = request->method == METHOD_GET;

    lookup->reason = "bypass";
    if (lookup->cache == NULL || request->method == METHOD_CONNECT)
        return true;
    if (!write_uri(lookup, origin, call))
        return false;
    cache_control_read(request->fields, true, &lookup->control);
    lookup->reason = is_get || request->method == METHOD_HEAD ? "request" : "method";
    if ((!is_get && request->method != METHOD_HEAD) || request->framing != FRAMING_NONE)
        return true;
    lookup->may_store = is_get && !lookup->control.no_store;
    /* Only the origin can evaluate these conditions (RFC 9111, section 4.3.2). */
    lookup->may_use = !fields_has(request->fields, TEXT("If-Match")) &&
                      !fields_has(request->fields, TEXT("If-Unmodified-Since"));
    return true;
}

void cache_lookup_end(struct cache_lookup *lookup)
{
    cache_lookup_drop_entry(lookup);
    cache_lookup_drop_part(lookup);
    collapse_end(&lookup->collapse);
    free((char *)(uintptr_t)lookup->uri.data);
}

void cache_lookup_note_request(struct cache_lookup *lookup, struct moment now)
{
    lookup->requested = now.seconds;
    lookup->collapse.asked = now.milliseconds;
    if (lookup->uri.data != NULL)
        lookup->removals = cache_uri_removals(lookup->cache, lookup->uri);
}

/* ---- the entry ---- */

bool cache_lookup_has_entry(const struct cache_lookup *lookup)
{
    return lookup->entry.space != NULL;
}

void cache_lookup_drop_entry(struct cache_lookup *lookup)
{
    cache_entry_close(&lookup->entry);
    lookup->validates = false;
}

bool cache_lookup_wants_rest(const struct cache_lookup *lookup)
{
    return lookup->wanted.end > 0;
}

void cache_lookup_drop_part(struct cache_lookup *lookup)
{
    cache_part_close(&lookup->part);
    lookup->wanted = (struct range){0};
}

void cache_lookup_read(const struct cache_lookup *lookup, struct cached_response *response,
                       const struct cache_record *record)
{
    freshness_read(response, record->status, record->fields, record->requested, record->received);
    if (lookup->cache->gateway)
        freshness_read_targeted(response, record->fields);
}

static void read_entry(struct cache_lookup *lookup)
{
    cache_lookup_read(lookup, &lookup->cached, &lookup->entry.record);
}

static bool has_validator(const struct cache_lookup *lookup)
{
    return lookup->cached.etag.length > 0 || lookup->cached.has_modified;
}

/* ---- asking the origin ---- */

static enum service_progress ask(struct cache_lookup *lookup, struct service_call *call)
{
    if (lookup->control.only_if_cached)
        return stage_refuse(call, 504, "The proxy has no stored response that could be used.");
    return stage_go_to(call, STAGE_OPEN);
}

/* Returns true if this request may wait for the fetch of another one. */
static bool may_follow(const struct cache_lookup *lookup, const struct request *request)
{
    return !lookup->control.no_store && !lookup->control.only_if_cached &&
           !freshness_has_credentials(request->fields);
}

/* Returns true if other requests could use the origin's response to this one: it is about the whole
 * entry, and not about what the client has. */
static bool may_lead(const struct cache_lookup *lookup, const struct request *request)
{
    const uint32_t own =
        1U << FIELD_RANGE | 1U << FIELD_IF_NONE_MATCH | 1U << FIELD_IF_MODIFIED_SINCE;

    return may_follow(lookup, request) &&
           (lookup->validates || (lookup->may_store && !(request->present & own)));
}

/* Returns true if no request can use the response to another one: it will not be stored, or each
 * use of it needs validation and it has no validator. */
static bool is_futile(const struct cache_lookup *lookup, struct moment now)
{
    return (cache_lookup_has_entry(lookup) && !lookup->validates &&
            (lookup->cached.control.no_cache || freshness_lifetime(&lookup->cached) <= 0)) ||
           fetch_lock_is_bypassed(lookup->cache, lookup->name, now.seconds);
}

static bool may_wait(const struct cache_lookup *lookup, const struct service_call *call)
{
    const struct proxy *proxy = call->context->state;

    return collapse_may_wait(&lookup->collapse, lookup->name, proxy->timeout,
                             call->now.milliseconds);
}

/* Sends earlier responses before this request fetches or waits: the client may be slow, and other
 * requests would wait for a fetch that it delays. */
static enum service_progress flush_first(struct cache_lookup *lookup)
{
    cache_lookup_drop_entry(lookup);
    return SERVICE_NEEDS_FLUSH;
}

/* Looks again, now with the lock: another request may just have stored the response. */
static enum service_progress look_again(struct cache_lookup *lookup)
{
    cache_lookup_drop_entry(lookup);
    return SERVICE_CONTINUES;
}

/* Returns true if no request for that URI has stored anything since this one has looked. */
static bool is_still_missing(const struct cache_lookup *lookup)
{
    return lookup->missing && fetch_lock_releases(lookup->cache, lookup->name) == lookup->releases;
}

/* Returns true if the client asks for the whole response, without conditions. */
static bool is_plain(const struct request *request)
{
    const uint32_t conditions = 1U << FIELD_RANGE | 1U << FIELD_IF_NONE_MATCH |
                                1U << FIELD_IF_MODIFIED_SINCE | 1U << FIELD_IF_RANGE;

    return request->method == METHOD_GET && !(request->present & conditions);
}

/* Finds the entry that another request is storing, if this one may use it as it grows. */
static bool find_growing(struct cache_lookup *lookup, const struct service_call *call)
{
    if (!is_plain(call->request) || !cache_growing_open(lookup->cache, lookup->name, lookup->uri,
                                                        call->request->fields, &lookup->entry))
        return false;
    read_entry(lookup);
    if (freshness_judge(&lookup->cached, &lookup->control, call->now.seconds) == FRESHNESS_FRESH)
        return true;
    cache_lookup_drop_entry(lookup);
    return false;
}

static enum service_progress wait_for_fetch(struct cache_lookup *lookup, struct service_call *call)
{
    cache_lookup_drop_entry(lookup);
    if (find_growing(lookup, call)) {
        lookup->collapse.waited = true;
        return stage_go_to(call, STAGE_FOLLOW);
    }
    return collapse_wait(&lookup->collapse, call, lookup->name);
}

/* Fails as the fetch has failed that this request waited for. Otherwise the waiting requests would
 * ask the origin one after another, and each would wait for it to fail. */
static enum service_progress share_failure(struct cache_lookup *lookup, struct service_call *call,
                                           int status)
{
    collapse_unlock(&lookup->collapse);
    return stage_fail(call, status,
                      status == 504 ? "The origin did not answer in time."
                                    : "The origin has failed another request for the same.");
}

/* Asks the origin, or waits for the request that does. */
static enum service_progress ask_alone(struct cache_lookup *lookup, struct service_call *call)
{
    struct collapse *collapse = &lookup->collapse;
    int failure = collapse_failure(collapse, lookup->name, call->now.milliseconds);

    if (failure != 0)
        return share_failure(lookup, call, failure);
    if (!collapse_is_held(collapse) && may_follow(lookup, call->request) &&
        !is_futile(lookup, call->now) && may_wait(lookup, call)) {
        bool leads = may_lead(lookup, call->request);
        if (call->output_pending)
            return flush_first(lookup);
        if (leads && collapse_lock(collapse, lookup->name) && !is_still_missing(lookup))
            return look_again(lookup);
        if (leads ? collapse->lock == FETCH_LOCK_BUSY : collapse_is_busy(collapse, lookup->name))
            return wait_for_fetch(lookup, call);
    }
    collapse->waited = false;
    collapse_gather(collapse);
    return ask(lookup, call);
}

/* ---- using the entry ---- */

/* Serves a stale entry at once; one of the requests that get it then asks the origin about it
 * (stale-while-revalidate). If that request is not plain, it asks first, and is served afterwards.
 */
static enum service_progress use_stale(struct cache_lookup *lookup, struct service_call *call)
{
    bool plain = is_plain(call->request);

    lookup->reason = "stale";
    lookup->validates = has_validator(lookup);
    if (may_lead(lookup, call->request) && (plain || lookup->validates)) {
        if (call->output_pending)
            return flush_first(lookup);
        if (collapse_is_held(&lookup->collapse)) {
            lookup->bridges = !plain;
            return plain ? stage_go_to(call, STAGE_SERVE_STALE) : ask(lookup, call);
        }
        if (collapse_lock(&lookup->collapse, lookup->name))
            return look_again(lookup);
    }
    lookup->validates = false;
    return stage_go_to(call, STAGE_SERVE_CACHED);
}

static enum service_progress use_entry(struct cache_lookup *lookup, struct service_call *call)
{
    read_entry(lookup);
    switch (freshness_judge(&lookup->cached, &lookup->control, call->now.seconds)) {
    case FRESHNESS_FRESH:
    case FRESHNESS_STALE:
        collapse_unlock(&lookup->collapse);
        return stage_go_to(call, STAGE_SERVE_CACHED);
    case FRESHNESS_WHILE_REVALIDATING:
        return use_stale(lookup, call);
    case FRESHNESS_VALIDATE:
        break;
    }
    if (collapse_is_answered(&lookup->collapse, lookup->name, call->now.milliseconds)) {
        collapse_unlock(&lookup->collapse);
        return stage_go_to(call, STAGE_SERVE_CACHED);
    }
    lookup->reason = freshness_is_fresh(&lookup->cached, call->now.seconds) ? "request" : "stale";
    lookup->validates = has_validator(lookup);
    return ask_alone(lookup, call);
}

/* ---- parts ---- */

/* Returns true if the request is for a range, and there is a part that may have it. The part must
 * be fresh, or not too stale for the client: others can only be joined. */
static bool find_part(struct cache_lookup *lookup, const struct service_call *call)
{
    const uint32_t conditions = 1U << FIELD_IF_NONE_MATCH | 1U << FIELD_IF_MODIFIED_SINCE;
    const struct request *request = call->request;
    enum freshness_use use;

    if (lookup->part_tried || request->method != METHOD_GET ||
        !(request->present & 1U << FIELD_RANGE) || request->present & conditions)
        return false;
    lookup->part_tried = true;
    if (!cache_part_open(lookup->cache, &lookup->part, lookup->uri))
        return false;
    cache_lookup_read(lookup, &lookup->cached, &lookup->part.entry.record);
    use = freshness_judge(&lookup->cached, &lookup->control, call->now.seconds);
    if (use == FRESHNESS_FRESH || use == FRESHNESS_STALE)
        return true;
    cache_lookup_drop_part(lookup);
    return false;
}

/* ---- the stage ---- */

static enum cache_found find(struct cache_lookup *lookup, const struct request *request)
{
    enum cache_found found;

    cache_name_entry(lookup->name, lookup->uri, 0, TEXT(""));
    lookup->releases = fetch_lock_releases(lookup->cache, lookup->name);
    found = cache_find(lookup->cache, lookup->uri, request->fields, &lookup->entry, lookup->name);
    lookup->missing = found == CACHE_NOTHING;

    /* The URI has got several responses since the lock was taken. */
    if (collapse_is_held(&lookup->collapse) && strcmp(lookup->name, lookup->collapse.name) != 0)
        collapse_unlock(&lookup->collapse);
    if (found == CACHE_FOUND && !cache_entry_verify_first(lookup->cache, &lookup->entry)) {
        cache_lookup_drop_entry(lookup);
        found = CACHE_NOTHING;
    }
    return found;
}

enum service_progress cache_lookup_run(struct cache_lookup *lookup, struct service_call *call)
{
    const struct proxy *proxy = call->context->state;
    enum cache_found found;

    if (!lookup->may_use)
        return ask(lookup, call);
    if (collapse_is_too_early(&lookup->collapse, lookup->name, proxy->timeout,
                              call->now.milliseconds))
        return wait_for_fetch(lookup, call);
    found = find(lookup, call->request);
    if (found == CACHE_FOUND)
        return use_entry(lookup, call);
    lookup->reason = found == CACHE_OTHER ? "vary-miss" : "uri-miss";
    if (found == CACHE_NOTHING && find_part(lookup, call))
        return stage_go_to(call, STAGE_SERVE_PART);
    return ask_alone(lookup, call);
}
