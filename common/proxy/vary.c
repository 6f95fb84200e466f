/* Reads the Vary field, and the fields of a request that it names. */
#include "common/proxy/vary.h"

#include "common/http/fields.h"
#include "common/http/request.h"

/* Returns false for "*", too: the response then depends on more than fields. */
static bool is_name(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] == '*' || !request_is_token(text.data[i]))
            return false;
    return true;
}

bool vary_matches_nothing(struct text fields)
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

void vary_write_list(struct text fields, struct buffer *list)
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

/* Returns true for fields that are lists: blanks between their elements have no meaning. */
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

/* The origin did not get a field that Connection names, so that field did not select. */
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

void vary_select(struct text list, struct text request_fields, struct buffer *selected)
{
    struct text name;

    while (text_next(&list, &name))
        select_field(name, request_fields, selected);
}
