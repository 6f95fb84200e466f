/* Opens parts of responses, and joins them. */
#include "common/proxy/cache_part.h"

#include "common/http/conditional.h"
#include "common/http/fields.h"
#include "common/proxy/cache_evict.h"

#include <stdlib.h>
#include <string.h>

/* ---- the fields ---- */

/* Reads a number, and `end` behind it; if that is NUL, the text ends there. */
static bool take_number(struct text *text, char end, uint64_t *number)
{
    size_t length = end != '\0' ? text_find(*text, end) : text->length;
    struct text digits = {text->data, length};

    if (digits.length == 0 || (end != '\0' && length == text->length) ||
        !text_number(digits, number))
        return false;
    length += end != '\0';
    *text = (struct text){text->data + length, text->length - length};
    return true;
}

bool cache_part_read_span(struct text fields, struct cache_span *span)
{
    const struct text unit = TEXT("bytes ");
    struct text value;
    uint64_t last;

    if (!fields_single(fields, CACHE_PART_FIELD, &value) || value.length < unit.length ||
        !text_same((struct text){value.data, unit.length}, unit))
        return false;
    value = (struct text){value.data + unit.length, value.length - unit.length};
    if (!take_number(&value, '-', &span->range.first) || !take_number(&value, '/', &last) ||
        !take_number(&value, '\0', &span->whole))
        return false;
    span->range.end = last + 1;
    return span->range.first <= last && last < span->whole;
}

struct text cache_part_tag(struct text fields)
{
    struct text tag;

    if (!fields_single(fields, TEXT("ETag"), &tag) || conditional_is_weak(tag) || tag.length < 2 ||
        tag.data[0] != '"' ||
        text_find((struct text){tag.data + 1, tag.length - 1}, '"') != tag.length - 2)
        return (struct text){0};
    return tag;
}

void cache_part_write_span(const struct cache_span *span, struct buffer *lines)
{
    buffer_add(lines, CACHE_PART_FIELD);
    buffer_add(lines, TEXT(": bytes "));
    buffer_number(lines, span->range.first);
    buffer_character(lines, '-');
    buffer_number(lines, span->range.end - 1);
    buffer_character(lines, '/');
    buffer_number(lines, span->whole);
    buffer_add(lines, TEXT("\r\n"));
}

/* ---- opening ---- */

void cache_part_start(struct cache_part *part)
{
    *part = (struct cache_part){.entry.file = -1};
}

void cache_part_close(struct cache_part *part)
{
    cache_entry_close(&part->entry);
    cache_part_start(part);
}

void cache_part_remove(const struct cache *cache, struct cache_part *part)
{
    if (part->entry.file >= 0)
        cache_evict_entry(cache, part->entry.name);
    cache_part_close(part);
}

bool cache_part_open(const struct cache *cache, struct cache_part *part, struct text uri)
{
    char whole[CACHE_NAME_SIZE], name[CACHE_NAME_SIZE];
    const struct cache_entry *entry = &part->entry;

    cache_part_start(part);
    cache_name_entry(whole, uri, 0, TEXT(""));
    cache_name_other(name, CACHE_NAME_PART, whole);
    if (!cache_entry_open(cache, &part->entry, name, uri))
        return false;
    if (entry->file >= 0 && entry->header.kind == CACHE_ENTRY_PART &&
        cache_part_read_span(entry->record.fields, &part->span) &&
        part->span.range.end - part->span.range.first == entry->record.length &&
        cache_part_tag(entry->record.fields).length > 0)
        return true;
    cache_part_close(part);
    return false;
}

/* ---- joining ---- */

bool cache_part_joins(const struct cache_part *part, const struct cache_span *span,
                      struct text fields)
{
    const struct range *stored = &part->span.range, *added = &span->range;
    uint64_t first = stored->first < added->first ? stored->first : added->first;
    uint64_t end = stored->end > added->end ? stored->end : added->end;
    bool touches = stored->first <= added->end && added->first <= stored->end;

    return part->entry.file >= 0 && part->span.whole == span->whole && touches &&
           end - first <= CACHE_PART_LIMIT &&
           text_equal(cache_part_tag(part->entry.record.fields), cache_part_tag(fields));
}

bool cache_part_copy(const struct cache *cache, const struct cache_part *part,
                     struct cache_writer *writer, struct range range)
{
    const struct cache_body body = cache_entry_body(cache, &part->entry);
    uint64_t at = range.first - part->span.range.first, end = range.end - part->span.range.first;
    char *space = malloc(CHECKSUM_BLOCK_BYTES);
    bool good = space != NULL;

    while (good && at < end) {
        uint64_t wanted = end - at < CHECKSUM_BLOCK_BYTES ? end - at : CHECKSUM_BLOCK_BYTES;
        uint64_t sound = block_checksums_check(&body, at, wanted);
        size_t size = (size_t)(sound < wanted ? sound : wanted);
        good = size > 0 && cache_file_read(body.file, space, size, body.start + at) &&
               cache_writer_add(cache, writer, (struct text){space, size});
        at += size;
    }
    free(space);
    return good;
}
