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
static enum progress ask(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (passage->asked.only_if_cached)
        return relay_refuse(errand, 504, "The proxy has no stored reply that could be used.");
    return relay_go_to(passage, STAGE_OPENING);
}

/* Whether what the origin will say could be for others, too. */
static bool is_shareable(const struct errand *errand)
{
    const struct passage *passage = errand->work;

    return passage->writes && !passage->asked.no_cache && !passage->asked.only_if_cached &&
           storage_is_for_all(errand) &&
           (passage->validates || !fields_has(errand->request->fields, TEXT("Range")));
}

/* Whether nobody else could use it without asking again. */
static bool is_futile(const struct errand *errand)
{
    const struct passage *passage = errand->work;
    bool found = passage->entry.space != NULL;

    return (found && (passage->kept.directives.no_cache || policy_lifetime(&passage->kept) <= 0)) ||
           cache_passes(passage->cache, passage->name, errand->now.seconds);
}

/* Who fetches may die, or the origin be silent: but as long as the fetch gets on it is waited for.
 */
static bool is_patient(const struct errand *errand)
{
    const struct passage *passage = errand->work;
    int64_t now = errand->now.milliseconds, since = passage->follow_since, advanced;

    if (since == 0)
        return true;
    advanced = cache_advanced(passage->cache, passage->name, now);
    return now < (advanced > since ? advanced : since) + passage->proxy->timeout +
                     FOLLOW_MILLISECONDS &&
           now < since + passage->proxy->timeout + FOLLOW_LIMIT;
}

static enum progress wait_for_other(struct errand *errand)
{
    struct passage *passage = errand->work;
    int64_t now = errand->now.milliseconds;

    if (passage->follow_since == 0) {
        passage->follow_since = now;
        passage->follow_wait = FIRST_WAIT;
    } else if (passage->follow_wait < MOST_WAIT) {
        passage->follow_wait *= 2;
    }
    passage->followed = true;
    storage_drop_entry(passage);
    errand->descriptor = -1;
    errand->deadline = now + passage->follow_wait;
    return ERRAND_WAITS;
}

/* Whether there is no use in looking at the store yet. */
static bool is_too_early(const struct errand *errand)
{
    struct passage *passage = errand->work;

    return passage->followed && passage->lock < 0 &&
           cache_moves(passage->cache, passage->name) == passage->moves &&
           ++passage->follow_looks % LOOKS != 0 && is_patient(errand);
}

/* Earlier replies go first: their client may be slow, and is not to hold what others wait for. */
static enum progress let_earlier_go(struct passage *passage)
{
    storage_drop_entry(passage);
    return ERRAND_BEHIND;
}

/* Whether the origin was waited for in vain, in the time that this one has waited. */
static bool was_in_vain(const struct errand *errand)
{
    const struct passage *passage = errand->work;

    return passage->followed && passage->lock < 0 &&
           cache_timed_out(passage->cache, passage->name, passage->follow_since,
                           errand->now.milliseconds);
}

/* One asks, and all others wait for what it gets. If it waits in vain, so have they: one after the
 * other they would wait for ever. */
static enum progress ask_alone(struct errand *errand)
{
    struct passage *passage = errand->work;

    if (was_in_vain(errand))
        return relay_fail(errand, 504, "The origin did not answer in time.");
    if (passage->lock < 0 && is_shareable(errand) && !is_futile(errand) && is_patient(errand)) {
        if (errand->behind)
            return let_earlier_go(passage);
        passage->moves = cache_moves(passage->cache, passage->name);
        if (storage_lock(passage)) {
            storage_drop_entry(passage); /* and look again: it may have come just now */
            return ERRAND_GOES_ON;
        }
        if (passage->lock == CACHE_LOCKED)
            return wait_for_other(errand);
    }
    passage->followed = false;
    return ask(errand);
}

static void read_entry(struct passage *passage)
{
    const struct cache_record *record = &passage->entry.record;

    policy_read(&passage->kept, record->status, record->fields, record->requested,
                record->received);
}

static bool may_validate(const struct passage *passage)
{
    return passage->kept.etag.length > 0 || passage->kept.has_modified;
}

/* Whether the client asks for the whole reply, whatever it has. */
static bool is_plain(const struct errand *errand)
{
    const uint32_t conditions = 1U << FIELD_RANGE | 1U << FIELD_IF_NONE_MATCH |
                                1U << FIELD_IF_MODIFIED_SINCE | 1U << FIELD_IF_RANGE;

    return errand->request->method == METHOD_GET && !(errand->request->present & conditions);
}

/* What is stale is served at once, and asked about behind that: by one of those who get it. One who
 * asks for less than the whole is answered after that. */
static enum progress serve_meanwhile(struct errand *errand)
{
    struct passage *passage = errand->work;
    bool plain = is_plain(errand);

    passage->why = "stale";
    passage->validates = may_validate(passage);
    if (is_shareable(errand) && (plain || passage->validates)) {
        if (errand->behind)
            return let_earlier_go(passage);
        if (passage->lock >= 0) {
            passage->meanwhile = !plain;
            return plain ? relay_go_to(passage, STAGE_SERVING) : ask(errand);
        }
        if (storage_lock(passage)) {
            storage_drop_entry(passage); /* and look again: it may be fresh just now */
            return ERRAND_GOES_ON;
        }
    }
    passage->validates = false;
    return serving_answer(errand, passage->entry.record.fields, -1);
}

static enum progress use_entry(struct errand *errand)
{
    struct passage *passage = errand->work;

    read_entry(passage);
    switch (policy_judge(&passage->kept, &passage->asked, errand->now.seconds)) {
    case POLICY_FRESH:
    case POLICY_STALE:
        storage_give_way(passage);
        return serving_answer(errand, passage->entry.record.fields, -1);
    case POLICY_MEANTIME:
        return serve_meanwhile(errand);
    case POLICY_VALIDATE:
        break;
    }
    passage->why = policy_is_fresh(&passage->kept, errand->now.seconds) ? "request" : "stale";
    passage->validates = may_validate(passage);
    return ask_alone(errand);
}

enum progress stored_look(struct errand *errand)
{
    struct passage *passage = errand->work;
    enum cache_found found;

    if (!passage->reads)
        return ask(errand);
    if (is_too_early(errand))
        return wait_for_other(errand);
    found = cache_find(passage->cache, passage->uri, errand->request->fields, &passage->entry,
                       passage->name);
    if (passage->lock >= 0 && strcmp(passage->name, passage->locked) != 0)
        storage_give_way(passage); /* it is one of several by now */
    if (found == CACHE_FOUND && !cache_verify(passage->cache, &passage->entry)) {
        storage_drop_entry(passage);
        found = CACHE_NOTHING;
    }
    if (found == CACHE_FOUND)
        return use_entry(errand);
    passage->why = found == CACHE_OTHER ? "vary-miss" : "uri-miss";
    return ask_alone(errand);
}

/* ---- what the origin says ---- */

/* The origin says that a stored reply is still good: answers with the entry, if that is meant. */
static enum progress confirm(struct errand *errand)
{
    struct passage *passage = errand->work;
    struct policy_reply reply;
    struct buffer fields;
    enum progress progress;

    if (!policy_confirms(passage->entry.record.fields, passage->fetch->upstream.reply.fields)) {
        if (storage_is_for_all(errand))
            cache_remove(passage->cache, passage->uri);
        storage_drop_entry(passage);
        return asking_again(errand);
    }
    if (!keeping_renew(errand, &fields, &reply))
        return relay_refuse(errand, 503, "The proxy has no memory for this request.");
    if (fields.length > CACHE_HEAD_LIMIT) { /* what is too long to be stored cannot be told */
        free(fields.data);
        storage_drop_entry(passage);
        return asking_again(errand);
    }
    if (passage->lock >= 0 && !policy_is_fresh(&reply, errand->now.seconds))
        cache_pass(passage->cache, passage->locked, errand->now.seconds);
    storage_give_way(passage);
    passage->kept = reply;
    passage->followed = false;
    progress = serving_answer(errand, (struct text){fields.data, fields.length}, 304);
    free(fields.data);
    return progress;
}

/* The origin has failed, with that status or with none: whether the entry may be used nevertheless.
 * It is answered with then. */
static bool bridge(struct errand *errand, int status)
{
    struct passage *passage = errand->work;

    if (passage->entry.space == NULL ||
        !(passage->meanwhile ||
          policy_bridges_error(&passage->kept, &passage->asked, errand->now.seconds)))
        return false;
    storage_give_way(passage);
    passage->followed = false;
    return serving_answer(errand, passage->entry.record.fields, status) == ERRAND_ANSWERED;
}

/* Whether a 304 can be about what the client has. Other methods are nothing to the store. */
static bool may_be_confirmed(const struct request *request)
{
    const uint32_t conditions = 1U << FIELD_IF_NONE_MATCH | 1U << FIELD_IF_MODIFIED_SINCE;

    return (request->method != METHOD_GET && request->method != METHOD_HEAD) ||
           request->present & conditions;
}

enum progress stored_judge(struct errand *errand)
{
    const struct passage *passage = errand->work;
    int status = passage->fetch->upstream.reply.status;

    if (passage->validates && status == 304)
        return confirm(errand);
    if (status == 304 && !may_be_confirmed(errand->request))
        return relay_fail(errand, 502, "The origin confirms what it was not asked about.");
    if (policy_is_error(status) && bridge(errand, status))
        return ERRAND_ANSWERED;
    return delivering_begin(errand);
}

enum progress stored_fail(struct errand *errand)
{
    const struct passage *passage = errand->work;

    if (passage->lock >= 0 && passage->failure == 504)
        cache_time_out(passage->cache, passage->locked, errand->now.milliseconds);
    if (bridge(errand, 0))
        return ERRAND_ANSWERED;
    return relay_refuse(errand, passage->failure, passage->problem);
}
