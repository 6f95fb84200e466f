/* Shows entries while they are written, and reads them as they grow. */
#include "common/proxy/cache_growing.h"

#include "common/proxy/cache_directory.h"
#include "common/proxy/fetch_wakeup.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MAGIC_GROWS "fvtgrow1"
#define MAGIC_WHOLE "fvtwhol1"
#define MAGIC_LOST  "fvtlost1"

/* The beginning of the file until the entry has its header. */
struct head {
    char magic[8];
    int32_t status;
    uint32_t minor;
    uint32_t lengths[5]; /* of the texts */
    int64_t requested, received;
    uint64_t start;  /* of the body: the texts end there */
    uint64_t length; /* of the whole body */
};

_Static_assert(sizeof(struct head) <= sizeof(struct cache_header), "it must not reach the texts");
_Static_assert(offsetof(struct head, length) == offsetof(struct cache_header, length),
               "a reader may meet the one or the other");

/* ---- the writer ---- */

static bool write_head(const struct cache_writer *writer, const char *magic, uint64_t length)
{
    struct head head = {
        .status = writer->header.status,
        .minor = writer->header.minor,
        .requested = writer->header.requested,
        .received = writer->header.received,
        .start = writer->start,
        .length = length,
    };

    memcpy(head.magic, magic, sizeof head.magic);
    memcpy(head.lengths, writer->header.lengths, sizeof head.lengths);
    return cache_file_write(writer->file, &head, sizeof head, 0);
}

void cache_growing_show(const struct cache *cache, const struct cache_writer *writer,
                        const char *name, uint64_t length)
{
    size_t slot = cache_shared_slot(name);
    struct cache_shared *shared = cache->shared;

    if (!write_head(writer, MAGIC_GROWS, length))
        return;
    atomic_store(&shared->growing_numbers[slot], 0);
    for (int i = 0; i < 2; i++)
        atomic_store(&shared->growing_files[slot][i], cache_name_half(writer->temporary, i));
    atomic_store(&shared->growing_removals[slot], writer->removals);
    atomic_store(&shared->growing_numbers[slot], cache_name_number(name));
    fetch_lock_note_news(cache, name);
}

void cache_growing_tell(const struct cache *cache, const struct cache_writer *writer)
{
    fetch_wakeup_tell(cache, writer->temporary);
}

bool cache_growing_end(const struct cache *cache, const struct cache_writer *writer, bool whole)
{
    bool written = write_head(writer, whole ? MAGIC_WHOLE : MAGIC_LOST, writer->header.length);

    cache_growing_tell(cache, writer);
    return written;
}

/* ---- the readers ---- */

/* Finds the file that is shown under that name. */
static bool find_file(const struct cache *cache, const char *name, struct text uri,
                      char file[CACHE_NAME_SIZE])
{
    size_t slot = cache_shared_slot(name);
    struct cache_shared *shared = cache->shared;
    uint64_t removals, number[2];

    if (atomic_load(&shared->growing_numbers[slot]) != cache_name_number(name))
        return false;
    for (int i = 0; i < 2; i++)
        number[i] = atomic_load(&shared->growing_files[slot][i]);
    removals = atomic_load(&shared->growing_removals[slot]);
    cache_name_write(file, CACHE_NAME_TEMPORARY, number);
    return atomic_load(&shared->growing_numbers[slot]) == cache_name_number(name) &&
           !cache_uri_removed_since(cache, uri, removals);
}

static size_t texts_length(const struct head *head)
{
    size_t length = 0;

    for (int i = 0; i < 5; i++)
        length += head->lengths[i] <= CACHE_TEXTS_LIMIT ? head->lengths[i] : CACHE_TEXTS_LIMIT;
    return length;
}

static bool is_sound(const struct head *head)
{
    size_t length = texts_length(head);

    return memcmp(head->magic, MAGIC_GROWS, sizeof head->magic) == 0 &&
           length <= CACHE_TEXTS_LIMIT && head->start >= sizeof(struct cache_header) + length;
}

static bool read_texts(struct cache_entry *entry, const struct head *head)
{
    struct cache_record *record = &entry->record;
    struct text *const texts[5] = {&record->uri, &record->list, &record->selected, &record->reason,
                                   &record->fields};
    size_t length = texts_length(head);
    const char *data = entry->space = malloc(length + 1);

    if (data == NULL || !cache_file_read(entry->file, entry->space, length, head->start - length))
        return false;
    for (int i = 0; i < 5; i++) {
        *texts[i] = (struct text){data, head->lengths[i]};
        data += head->lengths[i];
    }
    record->status = head->status;
    record->minor = head->minor;
    record->requested = head->requested;
    record->received = head->received;
    record->length = head->length;
    entry->start = head->start;
    return true;
}

static bool is_for(const struct cache_record *record, struct text uri, struct text request_fields)
{
    struct text selected;
    char *space;
    bool same;

    if (!text_equal(record->uri, uri))
        return false;
    space = cache_entry_select(record->list, request_fields, &selected);
    same = space != NULL && text_equal(record->selected, selected);
    free(space);
    return same;
}

bool cache_growing_open(const struct cache *cache, const char *name, struct text uri,
                        struct text request_fields, struct cache_entry *entry)
{
    struct head head;

    *entry = (struct cache_entry){.file = -1};
    if (!find_file(cache, name, uri, entry->name))
        return false;
    entry->file = cache_file_open(cache, entry->name, O_RDONLY);
    if (entry->file >= 0 && cache_file_read(entry->file, &head, sizeof head, 0) &&
        is_sound(&head) && read_texts(entry, &head) && is_for(&entry->record, uri, request_fields))
        return true;
    cache_entry_close(entry);
    return false;
}

/* The writer holds a lock on the file as long as it writes. */
static bool is_abandoned(int file)
{
    if (flock(file, LOCK_SH | LOCK_NB) < 0)
        return false;
    flock(file, LOCK_UN);
    return true;
}

/* Returns the bytes of the file behind the texts. */
static uint64_t body_in_file(const struct cache_entry *entry)
{
    struct stat status;

    if (fstat(entry->file, &status) < 0 || (uint64_t)status.st_size < entry->start)
        return 0;
    return (uint64_t)status.st_size - entry->start;
}

static bool has_magic(const struct cache_header *header, const char *magic)
{
    return memcmp(header->magic, magic, sizeof header->magic) == 0;
}

/* Returns true if the header says how long the whole body is. It may have been read while it was
 * written: a length that the file does not have is an old one. */
static bool is_whole(const struct cache_entry *entry, const struct cache_header *header)
{
    return !has_magic(header, MAGIC_GROWS) && !has_magic(header, MAGIC_LOST) &&
           header->length <= body_in_file(entry);
}

/* A writer that dies after it was seen to live is found out at the next look. */
enum cache_growing_state cache_growing_look(const struct cache_entry *entry, bool thorough,
                                            uint64_t *length)
{
    bool abandoned = thorough && is_abandoned(entry->file);
    struct cache_header header;

    *length = body_in_file(entry); /* first: the file grows beyond its body at the end */
    if (!cache_file_read(entry->file, &header, sizeof header, 0))
        return CACHE_GROWING_LOST;
    if (is_whole(entry, &header)) {
        *length = header.length;
        return CACHE_GROWING_WHOLE;
    }
    if (has_magic(&header, MAGIC_LOST)) {
        *length = body_in_file(entry); /* nothing comes behind it */
        abandoned = true;
    }
    if (*length < entry->record.length)
        return abandoned ? CACHE_GROWING_LOST : CACHE_GROWING_GROWS;
    *length = entry->record.length;
    return CACHE_GROWING_WHOLE;
}
