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

/* Returns true for fields in which the proxy tells the origin the client's address: the origin did
 * not select the response by what the client wrote there. */
static bool tells_address(struct text name)
{
    return text_same(name, TEXT("Forwarded")) || text_same(name, TEXT("X-Forwarded-For"));
}

bool vary_matches_nothing(struct text fields)
{
    struct text value, element;
    size_t from = 0;

    while (fields_find(fields, TEXT("Vary"), &from, &value))
        while (text_next(&value, &element))
            if (!is_name(element) || tells_address(element))
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

/* ---- fields with weights ---- */

#define ELEMENTS_LIMIT 32

/* An element such as "en;q=0.5", with its weight in thousandths. */
struct element {
    struct text name;
    int weight;
};

struct elements {
    struct element all[ELEMENTS_LIMIT];
    size_t count;
};

/* Returns true for fields whose elements are names without regard to case, with weights (RFC 9110,
 * sections 12.5.2 to 12.5.4). */
static bool is_weighted(struct text name)
{
    return text_equal(name, TEXT("accept-charset")) || text_equal(name, TEXT("accept-encoding")) ||
           text_equal(name, TEXT("accept-language"));
}

/* Reads a weight: "0" or "1", perhaps with a point and at most three digits. Returns -1 for
 * anything else. */
static int read_weight(struct text text)
{
    int weight = 0, scale = 1000;

    if (text.length == 0 || text.length > 5 || (text.length > 1 && text.data[1] != '.'))
        return -1;
    for (size_t i = 0; i < text.length; i++) {
        if (i == 1)
            continue;
        if (text.data[i] < '0' || text.data[i] > '9')
            return -1;
        weight += (text.data[i] - '0') * scale;
        scale /= 10;
    }
    return weight <= 1000 ? weight : -1;
}

static bool read_element(struct text text, struct element *element)
{
    size_t semicolon = text_find(text, ';');
    struct text weight;

    *element = (struct element){text_trim((struct text){text.data, semicolon}), 1000};
    for (size_t i = 0; i < element->name.length; i++)
        if (!request_is_token(element->name.data[i]))
            return false;
    if (semicolon == text.length)
        return element->name.length > 0;
    weight = text_trim((struct text){text.data + semicolon + 1, text.length - semicolon - 1});
    if (weight.length < 2 || (weight.data[0] | 0x20) != 'q' || weight.data[1] != '=')
        return false;
    element->weight = read_weight((struct text){weight.data + 2, weight.length - 2});
    return element->name.length > 0 && element->weight >= 0;
}

/* Puts the element behind those of the same weight: their order may mean something to the origin.
 */
static bool insert(struct elements *elements, const struct element *element)
{
    size_t at = elements->count;

    if (at == ELEMENTS_LIMIT)
        return false;
    for (; at > 0 && elements->all[at - 1].weight < element->weight; at--)
        elements->all[at] = elements->all[at - 1];
    elements->all[at] = *element;
    elements->count++;
    return true;
}

/* Reads all fields of that name. Returns false if there are none, if they are malformed, or if they
 * have too many elements. */
static bool read_elements(struct text name, struct text request_fields, struct elements *elements)
{
    struct element element;
    struct text value, text;
    size_t from = 0;

    elements->count = 0;
    while (fields_find(request_fields, name, &from, &value))
        while (text_next(&value, &text))
            if (!read_element(text, &element) || !insert(elements, &element))
                return false;
    return elements->count > 0;
}

/* No blank follows the colon here: a malformed field, which stands as it is behind ": ", may look
 * like this one. */
static void add_weighted(const struct elements *elements, struct buffer *buffer)
{
    for (size_t i = 0; i < elements->count; i++) {
        buffer_add(buffer, i > 0 ? TEXT(", ") : TEXT(":"));
        add_lower(buffer, elements->all[i].name);
        if (elements->all[i].weight == 1000)
            continue;
        buffer_add(buffer, TEXT(";q="));
        buffer_number(buffer, (uint64_t)elements->all[i].weight);
    }
}

/* ---- the selecting fields ---- */

static void add_values(struct text name, struct text request_fields, struct buffer *selected)
{
    struct text separator = TEXT(": "), value;
    size_t from = 0;

    while (fields_find(request_fields, name, &from, &value)) {
        buffer_add(selected, separator);
        if (is_list(name))
            add_elements(selected, value);
        else
            buffer_add(selected, value);
        separator = TEXT(", ");
    }
}

/* The origin did not get a field that Connection names, so that field did not select. */
static void select_field(struct text name, struct text request_fields, struct buffer *selected)
{
    struct elements elements;

    buffer_add(selected, name);
    if (fields_is_hop(request_fields, name))
        ;
    else if (is_weighted(name) && read_elements(name, request_fields, &elements))
        add_weighted(&elements, selected);
    else
        add_values(name, request_fields, selected);
    buffer_add(selected, TEXT("\n"));
}

void vary_select(struct text list, struct text request_fields, struct buffer *selected)
{
    struct text name;

    while (text_next(&list, &name))
        select_field(name, request_fields, selected);
}
