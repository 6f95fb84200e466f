/* Reads the Cache-Control field of requests and responses. */
#include "common/proxy/cache_control.h"

#include "common/http/fields.h"
#include "common/http/request.h"
#include "common/http/structured.h"

/* One directive: "name", "name=token" or "name="quoted"". */
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

int64_t cache_control_seconds(struct text digits, int64_t malformed)
{
    uint64_t number;

    if (digits.length == 0)
        return malformed;
    for (size_t i = 0; i < digits.length; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return malformed;
    if (!text_number(digits, &number) || number > (uint64_t)CACHE_CONTROL_FOREVER)
        return CACHE_CONTROL_FOREVER;
    return (int64_t)number;
}

/* A directive with two different values gets the strictest value that there is. */
static void set_seconds(int64_t *seconds, int64_t value, int64_t strictest)
{
    *seconds = *seconds >= 0 && *seconds != value ? strictest : value;
}

static struct cache_control nothing(void)
{
    return (struct cache_control){.max_age = -1,
                                  .s_maxage = -1,
                                  .min_fresh = -1,
                                  .max_stale = -1,
                                  .stale_if_error = -1,
                                  .stale_while_revalidate = -1};
}

static void add_seconds(struct cache_control *control, const struct directive *directive)
{
    const struct {
        struct text name;
        int64_t *seconds;
        int64_t strictest;
    } known[] = {
        {TEXT_IS("max-age"), &control->max_age, 0},
        {TEXT_IS("s-maxage"), &control->s_maxage, 0},
        {TEXT_IS("min-fresh"), &control->min_fresh, CACHE_CONTROL_FOREVER},
        {TEXT_IS("stale-if-error"), &control->stale_if_error, 0},
        {TEXT_IS("stale-while-revalidate"), &control->stale_while_revalidate, 0},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_same(directive->name, known[i].name))
            set_seconds(known[i].seconds,
                        cache_control_seconds(directive->value, known[i].strictest),
                        known[i].strictest);
    if (text_same(directive->name, TEXT("max-stale")))
        set_seconds(&control->max_stale,
                    directive->has_value ? cache_control_seconds(directive->value, 0)
                                         : CACHE_CONTROL_FOREVER,
                    0);
}

/* Returns true for a list of names, each of them a token: a directive with any other value
 * restricts the whole response. */
static bool names_fields(struct text value)
{
    struct text name;
    bool any = false;

    for (; text_next(&value, &name); any = true)
        for (size_t i = 0; i < name.length; i++)
            if (!request_is_token(name.data[i]))
                return false;
    return any;
}

static void add_flag(struct cache_control *control, const struct directive *directive)
{
    const struct {
        struct text name;
        bool *flag;
    } known[] = {
        {TEXT_IS("no-store"), &control->no_store},
        {TEXT_IS("public"), &control->is_public},
        {TEXT_IS("must-revalidate"), &control->must_revalidate},
        {TEXT_IS("proxy-revalidate"), &control->proxy_revalidate},
        {TEXT_IS("must-understand"), &control->must_understand},
        {TEXT_IS("only-if-cached"), &control->only_if_cached},
    };
    bool is_qualified = names_fields(directive->value);

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_same(directive->name, known[i].name))
            *known[i].flag = true;
    if (text_same(directive->name, TEXT("no-cache")))
        *(is_qualified ? &control->no_cache_fields : &control->no_cache) = true;
    if (text_same(directive->name, TEXT("private")))
        *(is_qualified ? &control->private_fields : &control->is_private) = true;
}

void cache_control_read(struct text fields, bool of_request, struct cache_control *control)
{
    struct text value, element;
    bool said = false;
    size_t from = 0;

    *control = nothing();
    while (fields_find(fields, TEXT("Cache-Control"), &from, &value)) {
        said = true;
        if (!text_ends_quotes(value))
            control->no_store = control->no_cache = true;
        while (text_next(&value, &element)) {
            struct directive directive = split(element);
            add_flag(control, &directive);
            add_seconds(control, &directive);
        }
    }
    if (of_request) {
        control->no_cache |= control->no_cache_fields;
        if (!said && fields_list(fields, TEXT("Pragma"), TEXT("no-cache")))
            control->no_cache = true;
    }
}

/* ---- targeted fields ---- */

/* The last member with a key counts, as in any dictionary. A member whose value has the wrong type
 * is ignored, but a restriction applies even then. */
static void add_member(struct cache_control *control, const struct structured_member *member)
{
    const struct {
        struct text name;
        bool *flag;
    } flags[] = {
        {TEXT_IS("no-store"), &control->no_store},
        {TEXT_IS("no-cache"), &control->no_cache},
        {TEXT_IS("private"), &control->is_private},
        {TEXT_IS("public"), &control->is_public},
        {TEXT_IS("must-revalidate"), &control->must_revalidate},
        {TEXT_IS("proxy-revalidate"), &control->proxy_revalidate},
        {TEXT_IS("must-understand"), &control->must_understand},
    };
    const struct {
        struct text name;
        int64_t *seconds;
    } numbers[] = {
        {TEXT_IS("max-age"), &control->max_age},
        {TEXT_IS("s-maxage"), &control->s_maxage},
        {TEXT_IS("stale-if-error"), &control->stale_if_error},
        {TEXT_IS("stale-while-revalidate"), &control->stale_while_revalidate},
    };
    bool is_boolean = member->kind == STRUCTURED_BOOLEAN;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (text_equal(member->key, flags[i].name))
            *flags[i].flag = is_boolean ? member->truth : flags[i].flag != &control->is_public;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (text_equal(member->key, numbers[i].name) && member->kind == STRUCTURED_INTEGER &&
            member->integer >= 0)
            *numbers[i].seconds =
                member->integer < CACHE_CONTROL_FOREVER ? member->integer : CACHE_CONTROL_FOREVER;
}

bool cache_control_read_targeted(struct text fields, struct text name,
                                 struct cache_control *control)
{
    struct structured_member member;
    struct text value;
    size_t from = 0, members = 0;

    *control = nothing();
    while (fields_find(fields, name, &from, &value)) {
        for (; structured_next(&value, &member); members++)
            add_member(control, &member);
        if (value.length > 0)
            return false;
    }
    return members > 0;
}

/* ---- names ---- */

bool cache_control_names(struct text fields, struct text wanted, struct text name)
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
