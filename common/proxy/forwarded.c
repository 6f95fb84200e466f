/* Writes the fields that tell an origin about the client, and finds those that a client forges. */
#include "common/proxy/forwarded.h"

#include "common/http/fields.h"

#define STANDARD TEXT("Forwarded")
#define X_FOR    TEXT("X-Forwarded-For")
#define X_PROTO  TEXT("X-Forwarded-Proto")
#define X_HOST   TEXT("X-Forwarded-Host")

static bool sends_standard(const struct forwarded *forwarded)
{
    return forwarded->fields == FORWARDED_STANDARD || forwarded->fields == FORWARDED_BOTH;
}

static bool sends_x(const struct forwarded *forwarded)
{
    return forwarded->fields == FORWARDED_X || forwarded->fields == FORWARDED_BOTH;
}

/* ---- the client's fields ---- */

static char folded(char character)
{
    if (character >= 'A' && character <= 'Z')
        return (char)(character | 0x20);
    return character == '_' ? '-' : character;
}

/* Compares the beginning of the name; `known` has lower case. */
static bool begins(struct text name, struct text known)
{
    if (name.length < known.length)
        return false;
    for (size_t i = 0; i < known.length; i++)
        if (folded(name.data[i]) != known.data[i])
            return false;
    return true;
}

static bool tells_of_client(struct text name)
{
    const struct text standard = TEXT("forwarded"), real = TEXT("x-real-ip");

    return begins(name, TEXT("x-forwarded-")) ||
           (name.length == standard.length && begins(name, standard)) ||
           (name.length == real.length && begins(name, real));
}

static bool has_underscore(struct text name)
{
    return text_find(name, '_') < name.length;
}

bool forwarded_replaces(const struct forwarded *forwarded, struct text name)
{
    if (!tells_of_client(name))
        return false;
    if (!forwarded->append || has_underscore(name))
        return true;
    if (text_same(name, STANDARD))
        return sends_standard(forwarded);
    return sends_x(forwarded) && (text_same(name, X_FOR) || text_same(name, X_PROTO) ||
                                  (forwarded->host.length > 0 && text_same(name, X_HOST)));
}

/* ---- the proxy's fields ---- */

/* Begins a field, with the client's own values if they are kept. Returns true if there are any. */
static bool begin(const struct forwarded *forwarded, struct text fields, struct text name,
                  struct buffer *output)
{
    struct text value;
    size_t from = 0;
    bool any = false;

    buffer_add(output, name);
    buffer_add(output, TEXT(": "));
    while (forwarded->append && fields_find(fields, name, &from, &value)) {
        if (value.length == 0 || !text_ends_quotes(value))
            continue;
        if (any)
            buffer_add(output, TEXT(", "));
        buffer_add(output, value);
        any = true;
    }
    return any;
}

static bool is_safe_in_quotes(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] <= ' ' || text.data[i] == '"' || text.data[i] == '\\' ||
            text.data[i] >= 0x7f)
            return false;
    return text.length > 0;
}

/* An IPv6 address has brackets, and is quoted (RFC 7239, section 6). */
static void write_node(struct text address, struct buffer *output)
{
    bool is_v6 = text_find(address, ':') < address.length;

    buffer_add(output, TEXT("for="));
    buffer_add(output, is_v6 ? TEXT("\"[") : TEXT(""));
    buffer_add(output, address.length > 0 ? address : TEXT("unknown"));
    buffer_add(output, is_v6 ? TEXT("]\"") : TEXT(""));
}

static void write_standard(const struct forwarded *forwarded, struct text fields,
                           struct buffer *output)
{
    if (begin(forwarded, fields, STANDARD, output))
        buffer_add(output, TEXT(", "));
    write_node(forwarded->address, output);
    buffer_add(output, TEXT(";proto="));
    buffer_add(output, forwarded->scheme);
    if (is_safe_in_quotes(forwarded->host)) {
        buffer_add(output, TEXT(";host=\""));
        buffer_add(output, forwarded->host);
        buffer_character(output, '"');
    }
    buffer_add(output, TEXT("\r\n"));
}

/* The first proxy knows the scheme and the host; one behind it only knows those of that proxy. */
static void write_first(const struct forwarded *forwarded, struct text fields, struct text name,
                        struct text value, struct buffer *output)
{
    if (!begin(forwarded, fields, name, output))
        buffer_add(output, value);
    buffer_add(output, TEXT("\r\n"));
}

static void write_x(const struct forwarded *forwarded, struct text fields, struct buffer *output)
{
    if (begin(forwarded, fields, X_FOR, output))
        buffer_add(output, TEXT(", "));
    buffer_add(output, forwarded->address.length > 0 ? forwarded->address : TEXT("unknown"));
    buffer_add(output, TEXT("\r\n"));
    write_first(forwarded, fields, X_PROTO, forwarded->scheme, output);
    if (forwarded->host.length > 0)
        write_first(forwarded, fields, X_HOST, forwarded->host, output);
}

void forwarded_write(const struct forwarded *forwarded, struct text fields, struct buffer *output)
{
    if (sends_standard(forwarded))
        write_standard(forwarded, fields, output);
    if (sends_x(forwarded))
        write_x(forwarded, fields, output);
}
