#include "common/proxy/freshness.h"

#include "common/http/conditional.h"
#include "common/http/date.h"
#include "common/http/fields.h"

/* ---- directives ---- */

/* One of them: "name", "name=token" or "name="quoted"". */
struct directive {
    struct text name;
    struct text value; /* without its quotes */
    bool has_value;
};

static struct directive split(struct text element)
{
    size_t equals = text_find(element, '=');
    struct directive directive = {
        .name = text_trim((struct text){element.data, equals}),
        .has_value = equals < element.length,
    };

    if (!directive.has_value)
        return directive;
    directive.value = (struct text){element.data + equals + 1, element.length - equals - 1};
    if (directive.value.length >= 2 && directive.value.data[0] == '"' &&
        directive.value.data[directive.value.length - 1] == '"') {
        directive.value.data++;
        directive.value.length -= 2;
    }
    return directive;
}

/* A quoted string that does not end would swallow all that follows it. */
static bool is_balanced(struct text value)
{
    bool quoted = false;

    for (size_t i = 0; i < value.length; i++) {
        if (quoted && value.data[i] == '\\')
            i++;
        else if (value.data[i] == '"')
            quoted = !quoted;
    }
    return !quoted;
}

/* Seconds; `malformed` for what is no number. One too large to hold stands for the largest. */
static int64_t read_seconds(struct text digits, int64_t malformed)
{
    uint64_t number;

    if (digits.length == 0)
        return malformed;
    for (size_t i = 0; i < digits.length; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return malformed;
    if (!text_number(digits, &number) || number > (uint64_t)FRESHNESS_FOREVER)
        return FRESHNESS_FOREVER;
    return (int64_t)number;
}

/* What is said twice in two ways is not to be relied on. */
static void set_seconds(int64_t *seconds, int64_t value, int64_t strictest)
{
    *seconds = *seconds >= 0 && *seconds != value ? strictest : value;
}

static void add_seconds(struct directives *directives, const struct directive *directive)
{
    const struct {
        struct text name;
        int64_t *seconds;
        int64_t strictest;
    } known[] = {
        {TEXT_IS("max-age"), &directives->max_age, 0},
        {TEXT_IS("s-maxage"), &directives->s_maxage, 0},
        {TEXT_IS("min-fresh"), &directives->min_fresh, FRESHNESS_FOREVER},
        {TEXT_IS("stale-if-error"), &directives->stale_if_error, 0},
        {TEXT_IS("stale-while-revalidate"), &directives->stale_while_revalidate, 0},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_same(directive->name, known[i].name))
            set_seconds(known[i].seconds, read_seconds(directive->value, known[i].strictest),
                        known[i].strictest);
    if (text_same(directive->name, TEXT("max-stale")))
        set_seconds(&directives->max_stale,
                    directive->has_value ? read_seconds(directive->value, 0) : FRESHNESS_FOREVER,
                    0);
}

static void add_flag(struct directives *directives, const struct directive *directive)
{
    const struct {
        struct text name;
        bool *flag;
    } known[] = {
        {TEXT_IS("no-store"), &directives->no_store},
        {TEXT_IS("public"), &directives->is_public},
        {TEXT_IS("must-revalidate"), &directives->must_revalidate},
        {TEXT_IS("proxy-revalidate"), &directives->proxy_revalidate},
        {TEXT_IS("must-understand"), &directives->must_understand},
        {TEXT_IS("only-if-cached"), &directives->only_if_cached},
    };
    bool names_fields = directive->value.length > 0;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_same(directive->name, known[i].name))
            *known[i].flag = true;
    if (text_same(directive->name, TEXT("no-cache")))
        *(names_fields ? &directives->no_cache_fields : &directives->no_cache) = true;
    if (text_same(directive->name, TEXT("private")))
        *(names_fields ? &directives->private_fields : &directives->is_private) = true;
}

void freshness_directives(struct text fields, bool of_request, struct directives *directives)
{
    struct text value, element;
    bool said = false;
    size_t from = 0;

    *directives = (struct directives){.max_age = -1,
                                      .s_maxage = -1,
                                      .min_fresh = -1,
                                      .max_stale = -1,
                                      .stale_if_error = -1,
                                      .stale_while_revalidate = -1};
    while (fields_find(fields, TEXT("Cache-Control"), &from, &value)) {
        said = true;
        if (!is_balanced(value))
            directives->no_store = directives->no_cache = true;
        while (text_next(&value, &element)) {
            struct directive directive = split(element);
            add_flag(directives, &directive);
            add_seconds(directives, &directive);
        }
    }
    if (of_request) {
        directives->no_cache |= directives->no_cache_fields;
        if (!said && fields_list(fields, TEXT("Pragma"), TEXT("no-cache")))
            directives->no_cache = true;
    }
}

bool freshness_names(struct text fields, struct text wanted, struct text name)
{
    struct text value, element, listed;
    size_t from = 0;

    while (fields_find(fields, TEXT("Cache-Control"), &from, &value)) {
        while (text_next(&value, &element)) {
            struct directive directive = split(element);
            if (!text_same(directive.name, wanted))
                continue;
            while (text_next(&directive.value, &listed))
                if (text_same(listed, name))
                    return true;
        }
    }
    return false;
}

/* ---- a reply ---- */

/* In quotes, with none inside: anything else would mean something else in a list of tags. */
static bool is_tag(struct text tag)
{
    tag = conditional_opaque(tag);
    return tag.length >= 2 && tag.data[0] == '"' &&
           text_find((struct text){tag.data + 1, tag.length - 1}, '"') == tag.length - 2;
}

/* The only date of that name. */
static bool read_date(struct text fields, struct text name, int64_t now, int64_t *date)
{
    struct text value;

    return fields_single(fields, name, &value) && date_read(value, now, date);
}

/* Of a list of ages the first one counts, and what is no age does not. */
static int64_t read_age(struct text fields)
{
    struct text value, element;

    if (!fields_first(fields, TEXT("Age"), &value) || !text_next(&value, &element))
        return 0;
    return read_seconds(element, 0);
}

void freshness_read(struct cached_response *response, int status, struct text fields,
                    int64_t requested, int64_t received)
{
    *response = (struct cached_response){
        .status = status,
        .requested = requested < received ? requested : received,
        .received = received,
        .date = received,
        .age = read_age(fields),
        .has_expires = fields_has(fields, TEXT("Expires")),
        .has_cookie = fields_has(fields, TEXT("Set-Cookie")),
    };
    freshness_directives(fields, false, &response->directives);
    if (!read_date(fields, TEXT("Date"), received, &response->date))
        response->date = received;
    /* What is no date, such as 0, stands for the past. */
    if (!read_date(fields, TEXT("Expires"), received, &response->expires))
        response->expires = INT64_MIN / 4;
    response->has_modified =
        read_date(fields, TEXT("Last-Modified"), received, &response->modified);
    if (!response->has_modified ||
        !fields_single(fields, TEXT("Last-Modified"), &response->modified_text))
        response->modified_text = (struct text){0};
    if (!fields_single(fields, TEXT("ETag"), &response->etag) || !is_tag(response->etag))
        response->etag = (struct text){0};
}

/* Those that RFC 9110 defines as heuristically cacheable, but for 206; and RFC 7725, section 3. */
static bool is_heuristic(int status)
{
    static const int known[] = {200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (status == known[i])
            return true;
    return false;
}

/* Never for others: parts, and what is about this one request or its connection, and not about what
 * it asked for. RFC 6585 forbids to store 428, 429, 431 and 511. */
bool freshness_is_for_one(int status)
{
    static const int known[] = {206, 304, 407, 408, 411, 412, 413, 416,
                                417, 421, 425, 426, 428, 429, 431, 511};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (status == known[i])
            return true;
    return status < 200;
}

/* Final ones whose caching is understood here. */
static bool is_understood(int status)
{
    static const int others[] = {302, 303, 307, 400, 403, 500, 502, 503, 504};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (status == others[i])
            return true;
    return is_heuristic(status);
}

static bool is_explicit(const struct cached_response *response)
{
    return response->directives.s_maxage >= 0 || response->directives.max_age >= 0 ||
           response->has_expires;
}

bool freshness_has_credentials(struct text request_fields)
{
    return fields_has(request_fields, TEXT("Authorization"));
}

/* A request with credentials: the reply must say that it is for others, too. */
static bool allows_authorized(const struct directives *response)
{
    return response->is_public || response->must_revalidate || response->s_maxage >= 0;
}

/* Whether the entry would not have what it is to be judged by. */
static bool loses_its_rules(struct text fields)
{
    static const struct text rules[] = {
        TEXT_IS("Age"),     TEXT_IS("Cache-Control"), TEXT_IS("Date"),
        TEXT_IS("Expires"), TEXT_IS("Vary"),
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (fields_list(fields, TEXT("Connection"), rules[i]))
            return true;
    return false;
}

bool freshness_may_store(const struct cached_response *response, struct text request_fields,
                         struct text reply_fields)
{
    const struct directives *said = &response->directives;
    struct directives asked;

    freshness_directives(request_fields, true, &asked);
    if (freshness_is_for_one(response->status) || asked.no_store || loses_its_rules(reply_fields))
        return false;
    if (said->must_understand ? !is_understood(response->status) : said->no_store)
        return false;
    if (said->is_private || freshness_varies_on_all(reply_fields))
        return false;
    if (freshness_has_credentials(request_fields) && !allows_authorized(said))
        return false;
    if (response->has_cookie && !is_explicit(response))
        return false; /* allowed, but a guess is no reason to hand cookies to others */
    return said->is_public || is_explicit(response) || is_heuristic(response->status);
}

/* A tenth of the time that it had not been changed for. */
static int64_t guess(const struct cached_response *response)
{
    int64_t unchanged = response->date - response->modified;

    if (!response->has_modified || unchanged <= 0 ||
        !(is_heuristic(response->status) || response->directives.is_public))
        return 0;
    return unchanged / 10 < FRESHNESS_HEURISTIC_LIMIT ? unchanged / 10 : FRESHNESS_HEURISTIC_LIMIT;
}

int64_t freshness_lifetime(const struct cached_response *response)
{
    if (response->directives.s_maxage >= 0)
        return response->directives.s_maxage;
    if (response->directives.max_age >= 0)
        return response->directives.max_age;
    if (!response->has_expires)
        return guess(response);
    if (response->expires <= response->date)
        return 0;
    return response->expires - response->date < FRESHNESS_FOREVER
               ? response->expires - response->date
               : FRESHNESS_FOREVER;
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

    return age < FRESHNESS_FOREVER ? age : FRESHNESS_FOREVER;
}

bool freshness_is_fresh(const struct cached_response *response, int64_t now)
{
    return !response->directives.no_cache &&
           freshness_lifetime(response) > freshness_age(response, now);
}

/* ---- using a stored reply ---- */

/* The origin wants to be asked whenever it is stale, whatever anybody else allows. */
static bool forbids_stale(const struct directives *response)
{
    return response->no_cache || response->must_revalidate || response->proxy_revalidate ||
           response->s_maxage >= 0;
}

/* What the client asks for beyond freshness. Asked for an age of 0, a cache is to validate. */
static bool is_wanted(const struct directives *request, int64_t age, int64_t left)
{
    if (request->no_cache || request->max_age == 0)
        return false;
    if (request->max_age >= 0 && age > request->max_age)
        return false;
    return request->min_fresh < 0 || left >= request->min_fresh;
}

enum freshness_use freshness_judge(const struct cached_response *response,
                                   const struct directives *request, int64_t now)
{
    const struct directives *said = &response->directives;
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
    /* Who asks for an age does not take what is stale, unless told otherwise by max-stale. */
    if (over < said->stale_while_revalidate && request->max_age < 0)
        return FRESHNESS_MEANTIME;
    return FRESHNESS_VALIDATE;
}

bool freshness_bridges_error(const struct cached_response *response,
                             const struct directives *request, int64_t now)
{
    int64_t over = freshness_age(response, now) - freshness_lifetime(response);
    int64_t allowed = larger(response->directives.stale_if_error, request->stale_if_error);

    if (forbids_stale(&response->directives) || request->no_cache)
        return false;
    return allowed >= 0 && over <= allowed;
}

bool freshness_is_error(int status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

/* ---- fields ---- */

static bool is_kept(struct text fields, struct text name)
{
    static const struct text dropped[] = {
        TEXT_IS("Proxy-Authenticate"), TEXT_IS("Proxy-Authentication-Info"),
        TEXT_IS("Proxy-Authorization"), TEXT_IS("Content-Length"), /* the store knows it */
    };

    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++)
        if (text_same(name, dropped[i]))
            return false;
    return !fields_is_hop(fields, name) && !freshness_names(fields, TEXT("private"), name);
}

void freshness_keep(struct text fields, struct buffer *kept)
{
    struct text name, value;
    size_t from = 0;

    while (fields_next(fields, &from, &name, &value))
        if (is_kept(fields, name))
            fields_add(kept, name, value);
}

static bool same_single(struct text stored, struct text update, struct text name)
{
    struct text old, new;

    return fields_single(stored, name, &old) && fields_single(update, name, &new) &&
           text_equal(old, new);
}

bool freshness_confirms(struct text stored, struct text update)
{
    struct text old, new;

    if (fields_has(update, TEXT("ETag"))) {
        if (!fields_single(update, TEXT("ETag"), &new))
            return false;
        if (fields_single(stored, TEXT("ETag"), &old))
            return (conditional_is_weak(new) || !conditional_is_weak(old)) &&
                   text_equal(conditional_opaque(old), conditional_opaque(new));
        return conditional_is_weak(new) && same_single(stored, update, TEXT("Last-Modified"));
    }
    return !fields_has(update, TEXT("Last-Modified")) ||
           same_single(stored, update, TEXT("Last-Modified"));
}

bool freshness_same_head(struct text stored, uint64_t length, struct text update)
{
    static const struct text validators[] = {TEXT_IS("ETag"), TEXT_IS("Last-Modified")};
    struct text old, new;
    uint64_t number;

    for (int i = 0; i < 2; i++)
        if (fields_first(update, validators[i], &new) &&
            !(fields_first(stored, validators[i], &old) && text_equal(old, new)))
            return false;
    return !fields_single(update, TEXT("Content-Length"), &new) ||
           (text_number(new, &number) && number == length);
}

/* Not what describes the stored bytes: a reply without a body brings no others. */
static bool is_updated(struct text update, struct text name)
{
    static const struct text fixed[] = {TEXT_IS("Content-Encoding"), TEXT_IS("Content-Range")};

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (text_same(name, fixed[i]))
            return false;
    return is_kept(update, name);
}

void freshness_merge(struct text stored, struct text update, struct buffer *merged)
{
    /* What holds from now on says which fields are for one client alone. */
    struct text rules = fields_has(update, TEXT("Cache-Control")) ? update : stored;
    struct text name, value;
    size_t from = 0;

    while (fields_next(stored, &from, &name, &value)) {
        bool is_age = text_same(name, TEXT("Age")); /* of the old reply */
        bool replaced = is_updated(update, name) && fields_has(update, name);
        if (!is_age && !replaced && !freshness_names(rules, TEXT("private"), name))
            fields_add(merged, name, value);
    }
    from = 0;
    while (fields_next(update, &from, &name, &value))
        if (is_updated(update, name) && !freshness_names(rules, TEXT("private"), name))
            fields_add(merged, name, value);
}

/* ---- Vary ---- */

/* "*" cannot be a name, either: nobody knows what else it depends on. */
static bool is_name(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] == '*' || !request_is_token(text.data[i]))
            return false;
    return true;
}

bool freshness_varies_on_all(struct text fields)
{
    struct text value, element;
    size_t from = 0;

    while (fields_find(fields, TEXT("Vary"), &from, &value))
        while (text_next(&value, &element))
            if (!is_name(element))
                return true;
    return false;
}

static void add_lower(struct buffer *buffer, struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        buffer_character(buffer, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
    }
}

static bool is_listed(struct text list, struct text name)
{
    struct text element;

    while (text_next(&list, &element))
        if (text_same(element, name))
            return true;
    return false;
}

void freshness_vary_list(struct text fields, struct buffer *list)
{
    struct text value, element;
    size_t from = 0;

    while (fields_find(fields, TEXT("Vary"), &from, &value)) {
        while (text_next(&value, &element)) {
            if (is_listed((struct text){list->data, list->length}, element))
                continue;
            if (list->length > 0)
                buffer_character(list, ',');
            add_lower(list, element);
        }
    }
}

/* Where the blanks of a field do not matter, since it is known to be a list. */
static bool is_list(struct text name)
{
    static const struct text known[] = {
        TEXT_IS("accept"),
        TEXT_IS("accept-charset"),
        TEXT_IS("accept-encoding"),
        TEXT_IS("accept-language"),
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_equal(name, known[i]))
            return true;
    return false;
}

static void add_elements(struct buffer *buffer, struct text list)
{
    struct text element;

    for (bool begun = false; text_next(&list, &element); begun = true) {
        if (begun)
            buffer_add(buffer, TEXT(", "));
        buffer_add(buffer, element);
    }
}

/* A field that Connection names was not for the origin, which has answered without it. */
static void select_field(struct text name, struct text request_fields, struct buffer *selected)
{
    struct text separator = TEXT(": "), value;
    size_t from = 0;

    buffer_add(selected, name);
    while (!fields_is_hop(request_fields, name) &&
           fields_find(request_fields, name, &from, &value)) {
        buffer_add(selected, separator);
        if (is_list(name))
            add_elements(selected, value);
        else
            buffer_add(selected, value);
        separator = TEXT(", ");
    }
    buffer_add(selected, TEXT("\n"));
}

void freshness_select(struct text list, struct text request_fields, struct buffer *selected)
{
    struct text name;

    while (text_next(&list, &name))
        select_field(name, request_fields, selected);
}
