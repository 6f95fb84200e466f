/* Reads dictionaries of structured fields. */
#include "common/http/structured.h"

#include "common/http/request.h"

#include <string.h>

/* ---- characters ---- */

/* Returns the next character; NUL at the end, which no structured field contains. */
static char peek(const struct text *in)
{
    return in->length > 0 ? in->data[0] : '\0';
}

static void skip(struct text *in)
{
    in->data++;
    in->length--;
}

static bool take(struct text *in, char character)
{
    if (in->length == 0 || in->data[0] != character)
        return false;
    skip(in);
    return true;
}

static void skip_all(struct text *in, const char *characters)
{
    while (in->length > 0 && in->data[0] != '\0' && strchr(characters, in->data[0]) != NULL)
        skip(in);
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static bool is_small(char character)
{
    return character >= 'a' && character <= 'z';
}

static bool is_letter(char character)
{
    return is_small(character) || (character >= 'A' && character <= 'Z');
}

static bool is_printable(char character)
{
    return character >= 0x20 && character < 0x7f;
}

/* ---- items ---- */

static size_t read_digits(struct text *in, int64_t *number)
{
    size_t count = 0;

    for (; is_digit(peek(in)); count++, skip(in))
        if (count < 18)
            *number = *number * 10 + (peek(in) - '0');
    return count;
}

/* At most 15 digits; of a decimal, at most 12 before the point and 3 behind it. */
static bool read_number(struct text *in, struct structured_member *member)
{
    bool negative = take(in, '-');
    int64_t number = 0, fraction = 0;
    size_t digits = read_digits(in, &number);

    if (digits == 0)
        return false;
    if (take(in, '.')) {
        size_t behind = read_digits(in, &fraction);
        member->kind = STRUCTURED_DECIMAL;
        return digits <= 12 && behind >= 1 && behind <= 3;
    }
    member->kind = STRUCTURED_INTEGER;
    member->integer = negative ? -number : number;
    return digits <= 15;
}

static bool read_date(struct text *in, struct structured_member *member)
{
    skip(in);
    if (!read_number(in, member) || member->kind != STRUCTURED_INTEGER)
        return false;
    member->kind = STRUCTURED_DATE;
    return true;
}

static bool read_string(struct text *in, struct structured_member *member)
{
    member->kind = STRUCTURED_STRING;
    skip(in);
    while (is_printable(peek(in))) {
        if (take(in, '"'))
            return true;
        if (take(in, '\\') && peek(in) != '"' && peek(in) != '\\')
            return false;
        skip(in);
    }
    return false;
}

static bool read_token(struct text *in, struct structured_member *member)
{
    member->kind = STRUCTURED_TOKEN;
    do
        skip(in);
    while (request_is_token(peek(in)) || peek(in) == ':' || peek(in) == '/');
    return true;
}

static bool read_bytes(struct text *in, struct structured_member *member)
{
    member->kind = STRUCTURED_BYTES;
    skip(in);
    while (is_letter(peek(in)) || is_digit(peek(in)) || peek(in) == '+' || peek(in) == '/')
        skip(in);
    skip_all(in, "=");
    return take(in, ':');
}

static bool read_boolean(struct text *in, struct structured_member *member)
{
    member->kind = STRUCTURED_BOOLEAN;
    skip(in);
    member->truth = peek(in) == '1';
    return take(in, '0') || take(in, '1');
}

/* A byte of a display string: a character, or two small hexadecimal digits behind a percent sign.
 * Returns -1 for anything else. */
static int read_display_byte(struct text *in)
{
    int byte = (unsigned char)peek(in), high, low;

    if (!is_printable(peek(in)))
        return -1;
    skip(in);
    if (byte != '%')
        return byte;
    if (in->length < 2 || in->data[0] < '0' || in->data[1] < '0' ||
        (in->data[0] >= 'A' && in->data[0] <= 'F') || (in->data[1] >= 'A' && in->data[1] <= 'F'))
        return -1;
    high = text_hex(in->data[0]);
    low = text_hex(in->data[1]);
    skip(in);
    skip(in);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Between two bytes of UTF-8: `left` bytes of a character are missing, and the next must be from
 * `low` to `high`. */
struct utf8 {
    int left, low, high;
};

static bool utf8_take(struct utf8 *utf8, int byte)
{
    if (utf8->left > 0) {
        bool good = byte >= utf8->low && byte <= utf8->high;
        *utf8 = (struct utf8){utf8->left - 1, 0x80, 0xbf};
        return good;
    }
    if (byte < 0x80)
        return byte >= 0;
    *utf8 = (struct utf8){byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1, 0x80, 0xbf};
    if (byte == 0xe0)
        utf8->low = 0xa0; /* shorter forms exist */
    else if (byte == 0xf0)
        utf8->low = 0x90;
    else if (byte == 0xed)
        utf8->high = 0x9f; /* surrogates */
    else if (byte == 0xf4)
        utf8->high = 0x8f;
    return byte >= 0xc2 && byte <= 0xf4;
}

static bool read_display(struct text *in, struct structured_member *member)
{
    struct utf8 utf8 = {0, 0x80, 0xbf};

    member->kind = STRUCTURED_DISPLAY;
    skip(in);
    if (!take(in, '"'))
        return false;
    while (!take(in, '"'))
        if (!utf8_take(&utf8, read_display_byte(in)))
            return false;
    return utf8.left == 0;
}

static bool read_item(struct text *in, struct structured_member *member)
{
    char first = peek(in);

    if (first == '-' || is_digit(first))
        return read_number(in, member);
    if (first == '"')
        return read_string(in, member);
    if (first == '*' || is_letter(first))
        return read_token(in, member);
    if (first == ':')
        return read_bytes(in, member);
    if (first == '?')
        return read_boolean(in, member);
    if (first == '@')
        return read_date(in, member);
    return first == '%' && read_display(in, member);
}

/* ---- parameters and lists ---- */

static bool read_key(struct text *in, struct text *key)
{
    *key = *in;
    if (peek(in) != '*' && !is_small(peek(in)))
        return false;
    while (is_small(peek(in)) || is_digit(peek(in)) ||
           (peek(in) != '\0' && strchr("_-.*", peek(in)) != NULL))
        skip(in);
    key->length -= in->length;
    return true;
}

static bool read_parameters(struct text *in)
{
    struct structured_member ignored;
    struct text key;

    while (take(in, ';')) {
        skip_all(in, " ");
        if (!read_key(in, &key) || (take(in, '=') && !read_item(in, &ignored)))
            return false;
    }
    return true;
}

static bool read_list(struct text *in, struct structured_member *member)
{
    struct structured_member ignored;

    member->kind = STRUCTURED_LIST;
    skip(in);
    for (;;) {
        skip_all(in, " ");
        if (take(in, ')'))
            return true;
        if (!read_item(in, &ignored) || !read_parameters(in) ||
            (peek(in) != ' ' && peek(in) != ')'))
            return false;
    }
}

/* ---- dictionaries ---- */

static bool read_member(struct text *in, struct structured_member *member)
{
    *member = (struct structured_member){.kind = STRUCTURED_BOOLEAN, .truth = true};
    if (!read_key(in, &member->key))
        return false;
    if (take(in, '=') && !(peek(in) == '(' ? read_list(in, member) : read_item(in, member)))
        return false;
    return read_parameters(in);
}

bool structured_next(struct text *dictionary, struct structured_member *member)
{
    struct text in = *dictionary;

    skip_all(&in, " ");
    if (in.length == 0) {
        *dictionary = in;
        return false;
    }
    if (!read_member(&in, member))
        return false;
    skip_all(&in, " \t");
    if (in.length > 0) {
        if (!take(&in, ','))
            return false;
        skip_all(&in, " \t");
        if (in.length == 0)
            return false; /* a comma at the end */
    }
    *dictionary = in;
    return true;
}

bool structured_is_dictionary(struct text text)
{
    struct structured_member member;

    while (structured_next(&text, &member))
        ;
    return text.length == 0;
}
