/* Chooses the fields that an entry stores, and updates them. */
#include "common/proxy/stored_fields.h"

#include "common/http/conditional.h"
#include "common/http/fields.h"
#include "common/proxy/cache_control.h"

static bool is_stored(struct text fields, struct text name)
{
    static const struct text dropped[] = {
        TEXT_IS("Proxy-Authenticate"), TEXT_IS("Proxy-Authentication-Info"),
        TEXT_IS("Proxy-Authorization"), TEXT_IS("Content-Length"), /* the entry has it elsewhere */
    };

    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++)
        if (text_same(name, dropped[i]))
            return false;
    return !fields_is_hop(fields, name) && !cache_control_names(fields, TEXT("private"), name);
}

void stored_fields_write(struct text fields, struct text except, struct buffer *stored)
{
    struct text name, value;
    size_t from = 0;

    while (fields_next(fields, &from, &name, &value))
        if (!text_same(name, except) && is_stored(fields, name))
            fields_add(stored, name, value);
}

static bool same_single(struct text stored, struct text update, struct text name)
{
    struct text old, new;

    return fields_single(stored, name, &old) && fields_single(update, name, &new) &&
           text_equal(old, new);
}

bool stored_fields_confirm(struct text stored, struct text update)
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

bool stored_fields_match_head(struct text stored, uint64_t length, struct text update)
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

/* Returns false for fields that describe the stored body: the update has none. */
static bool is_updated(struct text update, struct text name)
{
    static const struct text fixed[] = {TEXT_IS("Content-Encoding"), TEXT_IS("Content-Range")};

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (text_same(name, fixed[i]))
            return false;
    return is_stored(update, name);
}

void stored_fields_update(struct text stored, struct text update, struct buffer *updated)
{
    /* The newer Cache-Control says which fields are private. */
    struct text rules = fields_has(update, TEXT("Cache-Control")) ? update : stored;
    struct text name, value;
    size_t from = 0;

    while (fields_next(stored, &from, &name, &value)) {
        bool is_age = text_same(name, TEXT("Age")); /* of the old response */
        bool replaced = is_updated(update, name) && fields_has(update, name);
        if (!is_age && !replaced && !cache_control_names(rules, TEXT("private"), name))
            fields_add(updated, name, value);
    }
    from = 0;
    while (fields_next(update, &from, &name, &value))
        if (is_updated(update, name) && !cache_control_names(rules, TEXT("private"), name))
            fields_add(updated, name, value);
}
