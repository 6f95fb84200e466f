/* Finds and writes header fields. */
#include "common/http/fields.h"

bool fields_next(struct text fields, size_t *from, struct text *name, struct text *value)
{
    struct text rest = {fields.data + *from, fields.length - *from};
    struct text line;
    size_t colon;

    if (rest.length == 0 || !text_line(&rest, &line))
        return false;
    colon = text_find(line, ':');
    if (colon == line.length)
        return false; /* the empty line at the end */
    *name = (struct text){line.data, colon};
    *value = text_trim((struct text){line.data + colon + 1, line.length - colon - 1});
    *from = fields.length - rest.length;
    return true;
}

static bool has_name(struct text line, struct text name)
{
    return line.length > name.length && line.data[name.length] == ':' &&
           text_same((struct text){line.data, name.length}, name);
}

/* Each line has a colon: the parsers of heads take no other one. The empty line is the end. */
bool fields_find(struct text fields, struct text name, size_t *from, struct text *value)
{
    struct text rest = {fields.data + *from, fields.length - *from}, line;

    while (rest.length > 0 && text_line(&rest, &line) && line.length > 0) {
        *from = fields.length - rest.length;
        if (has_name(line, name)) {
            *value = text_trim(
                (struct text){line.data + name.length + 1, line.length - name.length - 1});
            return true;
        }
    }
    return false;
}

bool fields_has(struct text fields, struct text name)
{
    struct text value;

    return fields_first(fields, name, &value);
}

bool fields_first(struct text fields, struct text name, struct text *value)
{
    size_t from = 0;

    return fields_find(fields, name, &from, value);
}

bool fields_single(struct text fields, struct text name, struct text *value)
{
    struct text second;
    size_t from = 0;

    return fields_find(fields, name, &from, value) && !fields_find(fields, name, &from, &second);
}

bool fields_list(struct text fields, struct text name, struct text element)
{
    struct text value, found;
    size_t from = 0;

    while (fields_find(fields, name, &from, &value))
        while (text_next(&value, &found))
            if (text_same(found, element))
                return true;
    return false;
}

bool fields_is_hop(struct text fields, struct text name)
{
    static const struct text known[] = {
        TEXT_IS("Connection"), TEXT_IS("Keep-Alive"), TEXT_IS("Proxy-Connection"),  TEXT_IS("TE"),
        TEXT_IS("Trailer"),    TEXT_IS("Upgrade"),    TEXT_IS("Transfer-Encoding"),
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text_same(name, known[i]))
            return true;
    return fields_list(fields, TEXT("Connection"), name);
}

struct text fields_for_hops(struct text fields)
{
    return fields_has(fields, TEXT("Connection")) ? fields : (struct text){0};
}

void fields_add(struct buffer *buffer, struct text name, struct text value)
{
    buffer_add(buffer, name);
    buffer_add(buffer, TEXT(": "));
    buffer_add(buffer, value);
    buffer_add(buffer, TEXT("\r\n"));
}
