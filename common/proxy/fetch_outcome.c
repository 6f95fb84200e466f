/* Chooses between the origin's response, a validated entry, and, if the origin has failed, a stale
 * entry. */
#include "common/proxy/fetch_outcome.h"

#include "common/proxy/cache_update.h"
#include "common/proxy/proxy_setup.h"
#include "common/proxy/send_response.h"
#include "common/proxy/serve_cached.h"
#include "common/proxy/stored_fields.h"

#include <stdlib.h>

/* Asks the origin again, without the conditions that it has not met. */
static enum service_progress ask_again(struct cache_lookup *lookup, struct fetch *fetch,
                                       struct service_call *call)
{
    cache_lookup_drop_entry(lookup);
    return fetch_again(fetch, call);
}

/* The origin has validated the entry with a 304: responds with it, if the 304 is about it. */
static enum service_progress validate(struct cache_lookup *lookup, struct fetch *fetch,
                                      struct service_call *call)
{
    struct cached_response response;
    struct buffer fields;
    enum service_progress progress;

    if (!stored_fields_confirm(lookup->entry.record.fields, fetch->connection.response.fields)) {
        if (!freshness_has_credentials(call->request->fields))
            cache_remove(lookup->cache, lookup->uri);
        return ask_again(lookup, fetch, call);
    }
    if (!cache_update_entry(lookup, fetch, call, &fields, &response))
        return stage_refuse(call, 503, "The proxy has no memory for this request.");
    if (fields.length > CACHE_HEAD_LIMIT) { /* too long for the head of a response */
        free(fields.data);
        return ask_again(lookup, fetch, call);
    }
    collapse_note_answer(&lookup->collapse, lookup->name, call->now.milliseconds);
    collapse_unlock(&lookup->collapse);
    lookup->cached = response;
    lookup->collapse.waited = false;
    progress = serve_cached_respond(lookup, call, (struct text){fields.data, fields.length}, 304);
    free(fields.data);
    return progress;
}

/* Responds with a stale entry if that may be used after an error. Returns false if not. */
static bool bridge(struct cache_lookup *lookup, struct service_call *call, int origin_status)
{
    const struct proxy *proxy = call->context->state;
    /* --stale-if-error is for an origin that cannot be reached (RFC 9111, section 4.2.4). */
    int64_t permitted = origin_status == SERVE_CACHED_NO_RESPONSE ? proxy->stale_if_error : -1;

    if (!cache_lookup_has_entry(lookup) ||
        !(lookup->bridges ||
          freshness_bridges_error(&lookup->cached, &lookup->control, permitted, call->now.seconds)))
        return false;
    collapse_unlock(&lookup->collapse);
    lookup->collapse.waited = false;
    return serve_cached_respond(lookup, call, lookup->entry.record.fields, origin_status) ==
           SERVICE_RESPONDS;
}

/* Returns true if a 304 can answer the client's own conditions. Methods other than GET and HEAD do
 * not concern the cache. */
static bool may_be_confirmed(const struct request *request)
{
    const uint32_t conditions = 1U << FIELD_IF_NONE_MATCH | 1U << FIELD_IF_MODIFIED_SINCE;

    return (request->method != METHOD_GET && request->method != METHOD_HEAD) ||
           request->present & conditions;
}

/* ---- the rest of a range ---- */

/* Returns true if the response is just what the part lacks. */
static bool is_rest(const struct cache_lookup *lookup, const struct parsed_response *head)
{
    struct cache_span span;

    return head->status == 206 && cache_part_read_span(head->fields, &span) &&
           span.range.first == lookup->part.span.range.end &&
           span.range.end == lookup->wanted.end &&
           cache_part_joins(&lookup->part, &span, head->fields);
}

/* A 200 says that the part is outdated. It also answers the client's own request, since a server
 * may ignore Range; so do redirections and most errors. After any other response, the origin is
 * asked for the whole range. */
static enum service_progress take_rest(struct cache_store *store, struct fetch *fetch,
                                       struct service_call *call)
{
    struct cache_lookup *lookup = store->lookup;
    const struct parsed_response *head = &fetch->connection.response;

    if (is_rest(lookup, head))
        return send_response_begin(store, fetch, call);
    if (head->status < 300 ? head->status != 200 : freshness_is_for_one(head->status))
        return fetch_whole(fetch, lookup, call);
    if (head->status == 200)
        cache_part_remove(lookup->cache, &lookup->part);
    cache_lookup_drop_part(lookup);
    return send_response_begin(store, fetch, call);
}

enum service_progress fetch_outcome_run(struct cache_store *store, struct fetch *fetch,
                                        struct service_call *call)
{
    struct cache_lookup *lookup = store->lookup;
    int status = fetch->connection.response.status;

    if (cache_lookup_wants_rest(lookup))
        return take_rest(store, fetch, call);
    if (lookup->validates && status == 304)
        return validate(lookup, fetch, call);
    if (status == 304 && !may_be_confirmed(call->request))
        return stage_fail(
            call, 502,
            "The origin sends 304 (Not Modified), but nobody asked whether it was modified.");
    if (freshness_is_error(status) && bridge(lookup, call, status))
        return SERVICE_RESPONDS;
    return send_response_begin(store, fetch, call);
}

enum service_progress fetch_outcome_fail(struct cache_lookup *lookup, struct service_call *call)
{
    const struct stage_state *state = call->work;

    collapse_note_failure(&lookup->collapse, state->status, call->now.milliseconds);
    if (bridge(lookup, call, SERVE_CACHED_NO_RESPONSE))
        return SERVICE_RESPONDS;
    return stage_refuse(call, state->status, state->problem);
}
