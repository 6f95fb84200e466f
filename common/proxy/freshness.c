/* Decides whether a response may be stored, how long it is fresh, and how long it may be used when
 * it is stale. */
#include "common/proxy/freshness.h"

#include "common/http/conditional.h"
#include "common/http/date.h"
#include "common/http/fields.h"
#include "common/proxy/vary.h"

/* ---- reading ---- */

/* Returns true for an entity tag: one pair of quotes, perhaps behind W/. Any other text would
 * change the meaning of a list of tags. */
static bool is_tag(struct text tag)
{
    tag = conditional_opaque(tag);
    return tag.length >= 2 && tag.data[0] == '"' &&
           text_find((struct text){tag.data + 1, tag.length - 1}, '"') == tag.length - 2;
}

/* The fields that it reads, beside Cache-Control. */
enum { AGE, DATE, EXPIRES, MODIFIED, ETAG, COOKIE, FIELD_COUNT };

struct found {
    struct text value; /* of the first field of that name */
    int count;
};

/* Finds all of them at once: each hit reads them. */
static void find_fields(struct text fields, struct found found[FIELD_COUNT])
{
    static const struct text names[FIELD_COUNT] = {
        [AGE] = TEXT_IS("Age"),         [DATE] = TEXT_IS("Date"),
        [EXPIRES] = TEXT_IS("Expires"), [MODIFIED] = TEXT_IS("Last-Modified"),
        [ETAG] = TEXT_IS("ETag"),       [COOKIE] = TEXT_IS("Set-Cookie"),
    };
    struct text name, value;
    size_t from = 0;

    for (int i = 0; i < FIELD_COUNT; i++)
        found[i] = (struct found){0};
    while (fields_next(fields, &from, &name, &value))
        for (int i = 0; i < FIELD_COUNT; i++)
            if (text_same(name, names[i]) && found[i].count++ == 0)
                found[i].value = value;
}

/* Reads the date if there is exactly one field of its name. */
static bool read_date(const struct found *found, int64_t now, int64_t *date)
{
    return found->count == 1 && date_read(found->value, now, date);
}

/* The first of several ages counts; a malformed one does not (RFC 9111, section 5.1). */
static int64_t read_age(const struct found *found)
{
    struct text value = found->value, element;

    return text_next(&value, &element) ? cache_control_seconds(element, 0) : 0;
}

void freshness_read(struct cached_response *response, int status, struct text fields,
                    int64_t requested, int64_t received)
{
    struct found found[FIELD_COUNT];

    find_fields(fields, found);
    *response = (struct cached_response){
        .status = status,
        .requested = requested < received ? requested : received,
        .received = received,
        .age = read_age(&found[AGE]),
        .has_expires = found[EXPIRES].count > 0,
        .has_cookie = found[COOKIE].count > 0,
    };
    cache_control_read(fields, false, &response->control);
    if (!read_date(&found[DATE], received, &response->date))
        response->date = received;
    /* An invalid date, such as 0, is in the past (RFC 9111, section 5.3). */
    if (!read_date(&found[EXPIRES], received, &response->expires))
        response->expires = INT64_MIN / 4;
    response->has_modified = read_date(&found[MODIFIED], received, &response->modified);
    if (response->has_modified)
        response->modified_text = found[MODIFIED].value;
    if (found[ETAG].count == 1 && is_tag(found[ETAG].value))
        response->etag = found[ETAG].value;
}

/* Cache-Control and Expires are for other caches then (RFC 9213, section 2.2). */
void freshness_read_targeted(struct cached_response *response, struct text fields)
{
    struct cache_control control;

    if (!cache_control_read_targeted(fields, TEXT("CDN-Cache-Control"), &control))
        return;
    response->control = control;
    response->has_expires = false;
}

/* ---- storing ---- */

/* Returns true for heuristically cacheable statuses (RFC 9110, section 15.1; RFC 7725, section 3),
 * except 206. */
static bool is_heuristic(int status)
{
    static const int known[] = {200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (status == known[i])
            return true;
    return false;
}

/* Returns true for parts, 304 and interim responses, and for errors of the request or its
 * connection. RFC 6585 forbids storing 428, 429, 431 and 511. */
bool freshness_is_for_one(int status)
{
    static const int known[] = {206, 304, 407, 408, 411, 412, 413, 416,
                                417, 421, 425, 426, 428, 429, 431, 511};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (status == known[i])
            return true;
    return status < 200;
}

/* Returns true for final statuses whose caching rules this cache implements. */
static bool is_understood(int status)
{
    static const int others[] = {302, 303, 307, 400, 403, 500, 502, 503, 504};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (status == others[i])
            return true;
    return is_heuristic(status);
}

bool freshness_is_explicit(const struct cached_response *response)
{
    return response->control.s_maxage >= 0 || response->control.max_age >= 0 ||
           response->has_expires;
}

bool freshness_has_credentials(struct text request_fields)
{
    return fields_has(request_fields, TEXT("Authorization"));
}

/* Returns true if a response to a request with credentials may be stored (RFC 9111, section 3.5).
 */
static bool allows_authorized(const struct cache_control *response)
{
    return response->is_public || response->must_revalidate || response->s_maxage >= 0;
}

/* Returns true if a field that the cache needs is not stored, since Connection names it. */
static bool loses_its_rules(struct text fields)
{
    static const struct text rules[] = {
        TEXT_IS("Age"),  TEXT_IS("Cache-Control"), TEXT_IS("CDN-Cache-Control"),
        TEXT_IS("Date"), TEXT_IS("Expires"),       TEXT_IS("Vary"),
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (fields_list(fields, TEXT("Connection"), rules[i]))
            return true;
    return false;
}

bool freshness_may_store(const struct cached_response *response, struct text request_fields,
                         struct text response_fields)
{
    const struct cache_control *said = &response->control;
    struct cache_control asked;

    cache_control_read(request_fields, true, &asked);
    if (freshness_is_for_one(response->status) || asked.no_store ||
        loses_its_rules(response_fields))
        return false;
    if (said->must_understand ? !is_understood(response->status) : said->no_store)
        return false;
    if (said->is_private || vary_matches_nothing(response_fields))
        return false;
    if (freshness_has_credentials(request_fields) && !allows_authorized(said))
        return false;
    if (response->has_cookie && !freshness_is_explicit(response))
        return false; /* RFC 9111 allows it, but a guess is no reason to share a cookie */
    return said->is_public || freshness_is_explicit(response) || is_heuristic(response->status);
}

/* ---- lifetime and age ---- */

/* The heuristic lifetime: a tenth of the time since the last change (RFC 9111, section 4.2.2). */
static int64_t guess_lifetime(const struct cached_response *response)
{
    int64_t unchanged = response->date - response->modified;

    if (!response->has_modified || unchanged <= 0 ||
        !(is_heuristic(response->status) || response->control.is_public))
        return 0;
    return unchanged / 10 < FRESHNESS_HEURISTIC_LIMIT ? unchanged / 10 : FRESHNESS_HEURISTIC_LIMIT;
}

int64_t freshness_lifetime(const struct cached_response *response)
{
    if (response->control.s_maxage >= 0)
        return response->control.s_maxage;
    if (response->control.max_age >= 0)
        return response->control.max_age;
    if (!response->has_expires)
        return guess_lifetime(response);
    if (response->expires <= response->date)
        return 0;
    return response->expires - response->date < CACHE_CONTROL_FOREVER
               ? response->expires - response->date
               : CACHE_CONTROL_FOREVER;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t freshness_age(const struct cached_response *response, int64_t now)
{
    int64_t apparent = larger(0, response->received - response->date);
    int64_t corrected = response->age + (response->received - response->requested);
    int64_t age = larger(apparent, corrected) + larger(0, now - response->received);

    return age < CACHE_CONTROL_FOREVER ? age : CACHE_CONTROL_FOREVER;
}

bool freshness_is_fresh(const struct cached_response *response, int64_t now)
{
    return !response->control.no_cache &&
           freshness_lifetime(response) > freshness_age(response, now);
}

/* ---- using an entry ---- */

/* Returns true if the origin forbids to use the response while it is stale. */
static bool forbids_stale(const struct cache_control *response)
{
    return response->no_cache || response->must_revalidate || response->proxy_revalidate ||
           response->s_maxage >= 0;
}

/* Returns true if the age is one that the client accepts. max-age=0 asks for a validation. */
static bool is_wanted(const struct cache_control *request, int64_t age, int64_t left)
{
    if (request->no_cache || request->max_age == 0)
        return false;
    if (request->max_age >= 0 && age > request->max_age)
        return false;
    return request->min_fresh < 0 || left >= request->min_fresh;
}

enum freshness_use freshness_judge(const struct cached_response *response,
                                   const struct cache_control *request, int64_t now)
{
    const struct cache_control *said = &response->control;
    int64_t age = freshness_age(response, now);
    int64_t over = age - freshness_lifetime(response);

    if (said->no_cache || !is_wanted(request, age, -over))
        return FRESHNESS_VALIDATE;
    if (over < 0)
        return FRESHNESS_FRESH;
    if (forbids_stale(said))
        return FRESHNESS_VALIDATE;
    if (request->max_stale >= 0 && over <= request->max_stale)
        return FRESHNESS_STALE;
    /* A client that limits the age accepts no stale response, unless it says max-stale. */
    if (over < said->stale_while_revalidate && request->max_age < 0)
        return FRESHNESS_WHILE_REVALIDATING;
    return FRESHNESS_VALIDATE;
}

bool freshness_bridges_error(const struct cached_response *response,
                             const struct cache_control *request, int64_t permitted, int64_t now)
{
    int64_t over = freshness_age(response, now) - freshness_lifetime(response);
    int64_t allowed = larger(response->control.stale_if_error, request->stale_if_error);

    if (forbids_stale(&response->control) || request->no_cache)
        return false;
    return larger(allowed, permitted) >= 0 && over <= larger(allowed, permitted);
}

bool freshness_is_error(int status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}
