/* Removes entries after a request that may have changed something at the origin. */
#include "common/proxy/cache_invalidate.h"

#include "common/http/fields.h"

#include <stdlib.h>

static bool is_safe(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_OPTIONS ||
           method == METHOD_TRACE;
}

/* Returns the path of a reference to the same origin; nothing for any other. */
static struct text own_path(const struct origin *origin, struct text reference)
{
    const struct text scheme = TEXT("http://");
    size_t skip = scheme.length;
    struct text authority, host;
    uint16_t port;

    reference.length = text_find(reference, '#');
    if (reference.length >= 2 && reference.data[0] == '/' && reference.data[1] == '/')
        skip = 2;
    else if (reference.length > 0 && reference.data[0] == '/')
        return reference;
    else if (reference.length < skip || !text_same((struct text){reference.data, skip}, scheme))
        return (struct text){0};
    reference = (struct text){reference.data + skip, reference.length - skip};
    authority = (struct text){reference.data, text_find(reference, '/')};
    if (!address_split(authority, 80, &host, &port) || port != origin->port ||
        !text_same(host, origin->host))
        return (struct text){0};
    return (struct text){reference.data + authority.length, reference.length - authority.length};
}

/* Writes the URI in a field of the response, if it is of the same origin. Returns memory for the
 * caller to free; NULL if there is none, or no such URI. */
static char *read_named(const struct cache_lookup *lookup, const struct fetch *fetch,
                        struct text name, struct text *target)
{
    struct text value, path;
    size_t room;
    struct buffer buffer;

    if (!fields_single(fetch->connection.response.fields, name, &value))
        return NULL;
    path = own_path(fetch->origin, value);
    if (path.length == 0)
        return NULL;
    room = lookup->origin_length + path.length;
    buffer = (struct buffer){.data = malloc(room), .capacity = room};
    if (buffer.data == NULL)
        return NULL;
    buffer_add(&buffer, (struct text){lookup->uri.data, lookup->origin_length});
    buffer_add(&buffer, path);
    *target = (struct text){buffer.data, buffer.length};
    return buffer.data;
}

static void remove_named(const struct cache_lookup *lookup, const struct fetch *fetch,
                         struct text name)
{
    struct text target;
    char *space = read_named(lookup, fetch, name, &target);

    if (space != NULL)
        cache_remove(lookup->cache, target);
    free(space);
}

bool cache_invalidate_is_about_target(const struct cache_lookup *lookup, const struct fetch *fetch)
{
    struct text target;
    char *space = read_named(lookup, fetch, TEXT("Content-Location"), &target);
    bool same = space != NULL && text_equal(target, lookup->uri);

    free(space);
    return same;
}

void cache_invalidate(const struct cache_lookup *lookup, const struct fetch *fetch,
                      enum method method)
{
    if (is_safe(method) || fetch->connection.response.status >= 400)
        return;
    cache_remove(lookup->cache, lookup->uri);
    remove_named(lookup, fetch, TEXT("Location"));
    remove_named(lookup, fetch, TEXT("Content-Location"));
}
