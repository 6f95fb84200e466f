/* Reads slices of text, and writes into bounded buffers. */
#include "common/base/text.h"

#include <string.h>

struct text text_of(const char *string)
{
    return (struct text){string, strlen(string)};
}

bool text_equal(struct text a, struct text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter | 0x20) : letter;
}

/* strncasecmp() would depend on the locale. */
bool text_same(struct text a, struct text b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (a.data[i] != b.data[i] && lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

static bool is_blank(char character)
{
    return character == ' ' || character == '\t';
}

struct text text_trim(struct text text)
{
    while (text.length > 0 && is_blank(text.data[0])) {
        text.data++;
        text.length--;
    }
    while (text.length > 0 && is_blank(text.data[text.length - 1]))
        text.length--;
    return text;
}

/* Returns the length of the first element of a list: it ends at a comma outside quotes. */
static size_t element_length(struct text list)
{
    bool quoted = false;
    size_t i;

    for (i = 0; i < list.length; i++) {
        if (quoted && list.data[i] == '\\' && i + 1 < list.length)
            i++;
        else if (list.data[i] == '"')
            quoted = !quoted;
        else if (list.data[i] == ',' && !quoted)
            break;
    }
    return i;
}

bool text_ends_quotes(struct text value)
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

bool text_next(struct text *list, struct text *element)
{
    while (list->length > 0) {
        size_t length = element_length(*list);
        size_t taken = length < list->length ? length + 1 : length;

        *element = text_trim((struct text){list->data, length});
        list->data += taken;
        list->length -= taken;
        if (element->length > 0)
            return true;
    }
    return false;
}

bool text_line(struct text *text, struct text *line)
{
    const char *end = text->length > 0 ? memchr(text->data, '\n', text->length) : NULL;
    size_t length;

    if (end == NULL)
        return false;
    length = (size_t)(end - text->data);
    *line = (struct text){text->data, length};
    if (length > 0 && text->data[length - 1] == '\r')
        line->length--;
    text->data += length + 1;
    text->length -= length + 1;
    return true;
}

bool text_number(struct text digits, uint64_t *number)
{
    uint64_t value = 0;

    if (digits.length == 0)
        return false;
    for (size_t i = 0; i < digits.length; i++) {
        char digit = digits.data[i];
        if (digit < '0' || digit > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(digit - '0'), &value))
            return false;
    }
    *number = value;
    return true;
}

size_t text_find(struct text text, char character)
{
    const char *found = text.length > 0 ? memchr(text.data, character, text.length) : NULL;

    return found != NULL ? (size_t)(found - text.data) : text.length;
}

int text_hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

void buffer_add(struct buffer *buffer, struct text text)
{
    if (text.length > buffer->capacity - buffer->length)
        buffer->overflow = true;
    if (text.length == 0 || buffer->overflow)
        return;
    memcpy(buffer->data + buffer->length, text.data, text.length);
    buffer->length += text.length;
}

void buffer_string(struct buffer *buffer, const char *string)
{
    buffer_add(buffer, text_of(string));
}

void buffer_character(struct buffer *buffer, char character)
{
    buffer_add(buffer, (struct text){&character, 1});
}

static void add_digits(struct buffer *buffer, uint64_t number, unsigned base)
{
    char digits[20];
    size_t first = sizeof digits;

    do {
        digits[--first] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    buffer_add(buffer, (struct text){digits + first, sizeof digits - first});
}

void buffer_number(struct buffer *buffer, uint64_t number)
{
    add_digits(buffer, number, 10);
}

void buffer_hex(struct buffer *buffer, uint64_t number)
{
    add_digits(buffer, number, 16);
}

void buffer_html(struct buffer *buffer, struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        switch (text.data[i]) {
        case '&':
            buffer_string(buffer, "&amp;");
            break;
        case '<':
            buffer_string(buffer, "&lt;");
            break;
        case '>':
            buffer_string(buffer, "&gt;");
            break;
        case '"':
            buffer_string(buffer, "&quot;");
            break;
        case '\'':
            buffer_string(buffer, "&#39;");
            break;
        default:
            buffer_character(buffer, text.data[i]);
        }
    }
}

void buffer_path(struct buffer *buffer, struct text path)
{
    static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._~!$&'()*+,;=:@/";
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < path.length; i++) {
        unsigned char byte = (unsigned char)path.data[i];
        if (byte != '\0' && strchr(legal, byte) != NULL) {
            buffer_character(buffer, (char)byte);
        } else {
            char escape[3] = {'%', hex[byte >> 4], hex[byte & 15]};
            buffer_add(buffer, (struct text){escape, sizeof escape});
        }
    }
}
