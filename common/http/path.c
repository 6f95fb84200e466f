/* Decodes and normalises the path of a request target. */
#include "common/http/path.h"

/* Takes the first character off the text, decoded. */
static bool take_character(struct text *text, char *character)
{
    size_t length = 1;

    *character = text->data[0];
    if (*character == '%') {
        int high, low;
        if (text->length < 3)
            return false;
        high = text_hex(text->data[1]);
        low = text_hex(text->data[2]);
        if (high < 0 || low < 0)
            return false;
        *character = (char)(high << 4 | low);
        length = 3;
    }
    text->data += length;
    text->length -= length;
    return *character != '\0';
}

/* Takes the next segment off `rest`, and appends it to the path, decoded. */
static enum path_verdict take_segment(struct text *rest, char *path, size_t size, size_t *length)
{
    while (rest->length > 0) {
        char character;
        if (rest->data[0] == '/')
            return PATH_GOOD;
        if (!take_character(rest, &character))
            return PATH_MALFORMED;
        if (character == '/')
            return PATH_HIDDEN;
        if (*length + 2 >= size) /* room for a slash and a NUL */
            return PATH_LONG;
        path[(*length)++] = character;
    }
    return PATH_GOOD;
}

/* Removes the segment that begins at `first`, which is "..", and the one before it. */
static bool climb(const char *path, size_t first, size_t *length)
{
    if (first == 0)
        return false;
    *length = first - 1;
    while (*length > 0 && path[*length - 1] != '/')
        (*length)--;
    return true;
}

enum path_verdict path_resolve(struct text target, char *path, size_t size, size_t *length)
{
    *length = 0;
    while (target.length > 0) {
        size_t first = *length, added;
        enum path_verdict verdict = take_segment(&target, path, size, length);
        bool slash = target.length > 0;

        if (verdict != PATH_GOOD)
            return verdict;
        if (slash) {
            target.data++;
            target.length--;
        }
        added = *length - first;
        if (added == 1 && path[first] == '.') {
            *length = first;
        } else if (added == 2 && path[first] == '.' && path[first + 1] == '.') {
            if (!climb(path, first, length))
                return PATH_CLIMBS;
        } else if (added > 0) {
            if (path[first] == '.')
                return PATH_HIDDEN;
            if (slash)
                path[(*length)++] = '/';
        }
    }
    path[*length] = '\0';
    return PATH_GOOD;
}
