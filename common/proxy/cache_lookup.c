#include "common/proxy/cache_lookup.h"

#include "common/http/fields.h"
#include "common/proxy/cache_store.h"
#include "common/proxy/fetch.h"
#include "common/proxy/relay.h"
#include "common/proxy/send_response.h"
#include "common/proxy/serve_cached.h"
#include "common/proxy/storage.h"

#include <stdlib.h>
#include <string.h>

/* How long, beyond the time that the origin has, to wait for a reply that somebody else fetches,
 * since that last got on, and in all, before it is fetched once more; and how often to look. */
#define FOLLOW_MILLISECONDS 5000
#define FOLLOW_LIMIT        60000
#define FIRST_WAIT          2
#define MOST_WAIT           32
/* Where nobody has said that he is done, only every so many looks are at the store itself. */
#define LOOKS 4

/* ---- looking ---- */

/* Asks the origin, as the first one or after all. */
static enum service_progress ask(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    if (proxied->asked.only_if_cached)
        return relay_refuse(call, 504, "The proxy has no stored reply that could be used.");
    return relay_go_to(proxied, STAGE_OPENING);
}

/* Whether what the origin will say could be for others, too. */
static bool is_shareable(const struct service_call *call)
{
    const struct proxy_request *proxied = call->work;

    return proxied->writes && !proxied->asked.no_cache && !proxied->asked.only_if_cached &&
           storage_is_for_all(call) &&
           (proxied->validates || !fields_has(call->request->fields, TEXT("Range")));
}

/* Whether nobody else could use it without asking again. */
static bool is_futile(const struct service_call *call)
{
    const struct proxy_request *proxied = call->work;
    bool found = proxied->entry.space != NULL;

    return (found &&
            (proxied->kept.directives.no_cache || freshness_lifetime(&proxied->kept) <= 0)) ||
           cache_lock_is_bypassed(proxied->cache, proxied->name, call->now.seconds);
}

/* Who fetches may die, or the origin be silent: but as long as the fetch gets on it is waited for.
 */
static bool is_patient(const struct service_call *call)
{
    const struct proxy_request *proxied = call->work;
    int64_t now = call->now.milliseconds, since = proxied->follow_since, advanced;

    if (since == 0)
        return true;
    advanced = cache_lock_progress(proxied->cache, proxied->name, now);
    return now < (advanced > since ? advanced : since) + proxied->proxy->timeout +
                     FOLLOW_MILLISECONDS &&
           now < since + proxied->proxy->timeout + FOLLOW_LIMIT;
}

static enum service_progress wait_for_other(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    int64_t now = call->now.milliseconds;

    if (proxied->follow_since == 0) {
        proxied->follow_since = now;
        proxied->follow_wait = FIRST_WAIT;
    } else if (proxied->follow_wait < MOST_WAIT) {
        proxied->follow_wait *= 2;
    }
    proxied->followed = true;
    storage_drop_entry(proxied);
    call->descriptor = -1;
    call->deadline = now + proxied->follow_wait;
    return SERVICE_WAITS;
}

/* Whether there is no use in looking at the store yet. */
static bool is_too_early(const struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    return proxied->followed && proxied->lock < 0 &&
           cache_lock_releases(proxied->cache, proxied->name) == proxied->moves &&
           ++proxied->follow_looks % LOOKS != 0 && is_patient(call);
}

/* Earlier replies go first: their client may be slow, and is not to hold what others wait for. */
static enum service_progress let_earlier_go(struct proxy_request *proxied)
{
    storage_drop_entry(proxied);
    return SERVICE_NEEDS_FLUSH;
}

/* Whether the origin was waited for in vain, in the time that this one has waited. */
static bool was_in_vain(const struct service_call *call)
{
    const struct proxy_request *proxied = call->work;

    return proxied->followed && proxied->lock < 0 &&
           cache_lock_timed_out(proxied->cache, proxied->name, proxied->follow_since,
                                call->now.milliseconds);
}

/* One asks, and all others wait for what it gets. If it waits in vain, so have they: one after the
 * other they would wait for ever. */
static enum service_progress ask_alone(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    if (was_in_vain(call))
        return relay_fail(call, 504, "The origin did not answer in time.");
    if (proxied->lock < 0 && is_shareable(call) && !is_futile(call) && is_patient(call)) {
        if (call->output_pending)
            return let_earlier_go(proxied);
        proxied->moves = cache_lock_releases(proxied->cache, proxied->name);
        if (storage_lock(proxied)) {
            storage_drop_entry(proxied); /* and look again: it may have come just now */
            return SERVICE_CONTINUES;
        }
        if (proxied->lock == CACHE_LOCK_BUSY)
            return wait_for_other(call);
    }
    proxied->followed = false;
    return ask(call);
}

static void read_entry(struct proxy_request *proxied)
{
    const struct cache_record *record = &proxied->entry.record;

    freshness_read(&proxied->kept, record->status, record->fields, record->requested,
                   record->received);
}

static bool may_validate(const struct proxy_request *proxied)
{
    return proxied->kept.etag.length > 0 || proxied->kept.has_modified;
}

/* Whether the client asks for the whole reply, whatever it has. */
static bool is_plain(const struct service_call *call)
{
    const uint32_t conditions = 1U << FIELD_RANGE | 1U << FIELD_IF_NONE_MATCH |
                                1U << FIELD_IF_MODIFIED_SINCE | 1U << FIELD_IF_RANGE;

    return call->request->method == METHOD_GET && !(call->request->present & conditions);
}

/* What is stale is served at once, and asked about behind that: by one of those who get it. One who
 * asks for less than the whole is answered after that. */
static enum service_progress serve_meanwhile(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    bool plain = is_plain(call);

    proxied->why = "stale";
    proxied->validates = may_validate(proxied);
    if (is_shareable(call) && (plain || proxied->validates)) {
        if (call->output_pending)
            return let_earlier_go(proxied);
        if (proxied->lock >= 0) {
            proxied->meanwhile = !plain;
            return plain ? relay_go_to(proxied, STAGE_SERVING) : ask(call);
        }
        if (storage_lock(proxied)) {
            storage_drop_entry(proxied); /* and look again: it may be fresh just now */
            return SERVICE_CONTINUES;
        }
    }
    proxied->validates = false;
    return serve_cached_answer(call, proxied->entry.record.fields, -1);
}

static enum service_progress use_entry(struct service_call *call)
{
    struct proxy_request *proxied = call->work;

    read_entry(proxied);
    switch (freshness_judge(&proxied->kept, &proxied->asked, call->now.seconds)) {
    case FRESHNESS_FRESH:
    case FRESHNESS_STALE:
        storage_give_way(proxied);
        return serve_cached_answer(call, proxied->entry.record.fields, -1);
    case FRESHNESS_MEANTIME:
        return serve_meanwhile(call);
    case FRESHNESS_VALIDATE:
        break;
    }
    proxied->why = freshness_is_fresh(&proxied->kept, call->now.seconds) ? "request" : "stale";
    proxied->validates = may_validate(proxied);
    return ask_alone(call);
}

enum service_progress cache_lookup_find(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    enum cache_found found;

    if (!proxied->reads)
        return ask(call);
    if (is_too_early(call))
        return wait_for_other(call);
    found = cache_find(proxied->cache, proxied->uri, call->request->fields, &proxied->entry,
                       proxied->name);
    if (proxied->lock >= 0 && strcmp(proxied->name, proxied->locked) != 0)
        storage_give_way(proxied); /* it is one of several by now */
    if (found == CACHE_FOUND && !cache_entry_verify(proxied->cache, &proxied->entry)) {
        storage_drop_entry(proxied);
        found = CACHE_NOTHING;
    }
    if (found == CACHE_FOUND)
        return use_entry(call);
    proxied->why = found == CACHE_OTHER ? "vary-miss" : "uri-miss";
    return ask_alone(call);
}

/* ---- what the origin says ---- */

/* The origin says that a stored reply is still good: answers with the entry, if that is meant. */
static enum service_progress confirm(struct service_call *call)
{
    struct proxy_request *proxied = call->work;
    struct cached_response response;
    struct buffer fields;
    enum service_progress progress;

    if (!freshness_confirms(proxied->entry.record.fields,
                            proxied->fetch->upstream.response.fields)) {
        if (storage_is_for_all(call))
            cache_remove(proxied->cache, proxied->uri);
        storage_drop_entry(proxied);
        return fetch_again(call);
    }
    if (!cache_store_renew(call, &fields, &response))
        return relay_refuse(call, 503, "The proxy has no memory for this request.");
    if (fields.length > CACHE_HEAD_LIMIT) { /* what is too long to be stored cannot be told */
        free(fields.data);
        storage_drop_entry(proxied);
        return fetch_again(call);
    }
    if (proxied->lock >= 0 && !freshness_is_fresh(&response, call->now.seconds))
        cache_lock_note_bypass(proxied->cache, proxied->locked, call->now.seconds);
    storage_give_way(proxied);
    proxied->kept = response;
    proxied->followed = false;
    progress = serve_cached_answer(call, (struct text){fields.data, fields.length}, 304);
    free(fields.data);
    return progress;
}

/* The origin has failed, with that status or with none: whether the entry may be used nevertheless.
 * It is answered with then. */
static bool bridge(struct service_call *call, int status)
{
    struct proxy_request *proxied = call->work;

    if (proxied->entry.space == NULL ||
        !(proxied->meanwhile ||
          freshness_bridges_error(&proxied->kept, &proxied->asked, call->now.seconds)))
        return false;
    storage_give_way(proxied);
    proxied->followed = false;
    return serve_cached_answer(call, proxied->entry.record.fields, status) == SERVICE_RESPONDS;
}

/* Whether a 304 can be about what the client has. Other methods are nothing to the store. */
static bool may_be_confirmed(const struct request *request)
{
    const uint32_t conditions = 1U << FIELD_IF_NONE_MATCH | 1U << FIELD_IF_MODIFIED_SINCE;

    return (request->method != METHOD_GET && request->method != METHOD_HEAD) ||
           request->present & conditions;
}

enum service_progress cache_lookup_judge(struct service_call *call)
{
    const struct proxy_request *proxied = call->work;
    int status = proxied->fetch->upstream.response.status;

    if (proxied->validates && status == 304)
        return confirm(call);
    if (status == 304 && !may_be_confirmed(call->request))
        return relay_fail(call, 502, "The origin confirms what it was not asked about.");
    if (freshness_is_error(status) && bridge(call, status))
        return SERVICE_RESPONDS;
    return send_response_begin(call);
}

enum service_progress cache_lookup_fail(struct service_call *call)
{
    const struct proxy_request *proxied = call->work;

    if (proxied->lock >= 0 && proxied->failure == 504)
        cache_lock_note_timeout(proxied->cache, proxied->locked, call->now.milliseconds);
    if (bridge(call, 0))
        return SERVICE_RESPONDS;
    return relay_refuse(call, proxied->failure, proxied->problem);
}
