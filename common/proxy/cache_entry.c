/* Opens, checks and reads the entries of the cache. */
#include "common/proxy/cache_entry.h"

#include "common/base/checksum.h"
#include "common/proxy/cache_evict.h"
#include "common/proxy/vary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "fvtcach1"
/* Bytes that the first read takes: most entries are smaller. */
#define READ_SIZE 8192
/* Of all texts of an entry: this program writes no larger ones. */
#define TEXTS_LIMIT (4 * CACHE_HEAD_LIMIT)

/* ---- the header ---- */

static uint64_t sum_of(struct text bytes)
{
    struct checksum sum;

    checksum_start(&sum, 0);
    checksum_add(&sum, bytes);
    return checksum_end(&sum);
}

static uint64_t sum_header(const struct cache_header *header)
{
    return sum_of((struct text){(const char *)header, offsetof(struct cache_header, self)});
}

void cache_entry_seal(struct cache_header *header)
{
    memcpy(header->magic, MAGIC, sizeof header->magic);
    header->self = sum_header(header);
}

static size_t texts_length(const struct cache_header *header)
{
    size_t length = 0;

    for (int i = 0; i < 5; i++)
        length += header->lengths[i];
    return length;
}

static bool is_sound(const struct cache_header *header, uint64_t size)
{
    if (memcmp(header->magic, MAGIC, sizeof header->magic) != 0 ||
        header->self != sum_header(header) || texts_length(header) > TEXTS_LIMIT)
        return false;
    return header->length <= size && sizeof *header + texts_length(header) + header->length == size;
}

/* ---- the record ---- */

void cache_entry_texts(const struct cache_record *record, struct text texts[5])
{
    texts[0] = record->uri;
    texts[1] = record->list;
    texts[2] = record->selected;
    texts[3] = record->reason;
    texts[4] = record->fields;
}

static void slice_texts(struct cache_entry *entry)
{
    struct text *const texts[5] = {&entry->record.uri, &entry->record.list, &entry->record.selected,
                                   &entry->record.reason, &entry->record.fields};
    const struct cache_header *header = &entry->header;
    const char *data = entry->space + sizeof *header;

    for (int i = 0; i < 5; i++) {
        *texts[i] = (struct text){data, header->lengths[i]};
        data += header->lengths[i];
    }
    entry->record.status = header->status;
    entry->record.minor = header->minor;
    entry->record.requested = header->requested;
    entry->record.received = header->received;
    entry->record.length = header->length;
    entry->start = sizeof *header + texts_length(header);
}

/* Reads the header and the texts, and the body if it is small. */
static bool read_file(const struct cache *cache, struct cache_entry *entry)
{
    struct stat status;
    uint64_t size, known;

    if (fstat(entry->file, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != cache->owner || status.st_size < (off_t)sizeof entry->header)
        return false;
    size = (uint64_t)status.st_size;
    known = size < READ_SIZE ? size : READ_SIZE;
    entry->space = malloc(READ_SIZE);
    if (entry->space == NULL || !cache_file_read(entry->file, entry->space, (size_t)known, 0))
        return false;
    memcpy(&entry->header, entry->space, sizeof entry->header);
    if (!is_sound(&entry->header, size))
        return false;
    entry->start = sizeof entry->header + texts_length(&entry->header);
    if (entry->start > known) {
        char *larger = realloc(entry->space, entry->start);
        if (larger == NULL)
            return false;
        entry->space = larger;
        if (!cache_file_read(entry->file, larger + known, (size_t)(entry->start - known), known))
            return false;
    } else if (known == size) {
        entry->body = (struct text){entry->space + entry->start, (size_t)(size - entry->start)};
    }
    slice_texts(entry);
    return entry->header.texts ==
           sum_of((struct text){entry->record.uri.data, texts_length(&entry->header)});
}

/* ---- opening ---- */

static bool open_named(const struct cache *cache, struct cache_entry *entry, const char *name,
                       struct text uri)
{
    *entry = (struct cache_entry){.file = cache_file_open(cache, name, O_RDONLY)};
    if (entry->file < 0)
        return false;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    errno = 0;
    if (read_file(cache, entry)) {
        if (text_equal(entry->record.uri, uri))
            return true;
    } else if (errno != EMFILE && errno != ENOMEM) {
        cache_evict_entry(cache, name);
    }
    cache_entry_close(entry);
    return false;
}

/* Takes the newer record of a large entry, if there is one for exactly this entry. */
static void take_record(const struct cache *cache, struct cache_entry *entry)
{
    struct cache_entry newer;
    char name[CACHE_NAME_SIZE];

    cache_name_other(name, CACHE_NAME_RECORD, entry->name);
    if (!open_named(cache, &newer, name, entry->record.uri))
        return;
    if (newer.header.kind == CACHE_ENTRY_RECORD && newer.header.sum == entry->header.self) {
        char *space = entry->space;
        newer.record.length = entry->record.length;
        entry->record = newer.record;
        entry->space = newer.space;
        newer.space = space;
    }
    cache_entry_close(&newer);
}

bool cache_entry_open(const struct cache *cache, struct cache_entry *entry, const char *name,
                      struct text uri)
{
    if (!open_named(cache, entry, name, uri))
        return false;
    if (entry->record.length > CACHE_COPY_LIMIT)
        take_record(cache, entry);
    return true;
}

void cache_entry_close(struct cache_entry *entry)
{
    if (entry->file >= 0)
        close(entry->file);
    free(entry->space);
    *entry = (struct cache_entry){.file = -1};
}

char *cache_entry_select(struct text list, struct text request_fields, struct text *selected)
{
    size_t room = 2 * request_fields.length + 2 * list.length + 64;
    struct buffer buffer = {.data = malloc(room), .capacity = room};

    if (buffer.data == NULL)
        return NULL;
    vary_select(list, request_fields, &buffer);
    *selected = (struct text){buffer.data, buffer.length};
    return buffer.data;
}

/* ---- checking ---- */

static bool verify_file(const struct cache_entry *entry)
{
    const size_t size = 64 * 1024;
    uint64_t offset = 0;
    struct checksum sum;
    char *space = malloc(size);
    bool good = space != NULL;

    checksum_start(&sum, 0);
    while (good && offset < entry->record.length) {
        uint64_t left = entry->record.length - offset;
        size_t part = left < size ? (size_t)left : size;
        good = cache_file_read(entry->file, space, part, entry->start + offset);
        checksum_add(&sum, (struct text){space, part});
        offset += part;
    }
    free(space);
    return good && checksum_end(&sum) == entry->header.sum;
}

bool cache_entry_verify(const struct cache *cache, struct cache_entry *entry)
{
    bool good;

    if (entry->body.data != NULL)
        good = sum_of(entry->body) == entry->header.sum;
    else
        good = entry->record.length > CACHE_VERIFY_LIMIT || verify_file(entry);
    if (!good)
        cache_evict_entry(cache, entry->name);
    return good;
}

void cache_entry_touch(const struct cache_entry *entry)
{
    cache_file_touch(entry->file);
}
