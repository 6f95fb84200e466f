/* Opens, checks and reads the entries of the cache. */
#include "common/proxy/cache_entry.h"

#include "common/base/checksum.h"
#include "common/proxy/cache_evict.h"
#include "common/proxy/cache_memory.h"
#include "common/proxy/cache_shared.h"
#include "common/proxy/vary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "fvtcach2"
/* Bytes that the first read takes: most entries are smaller. */
#define READ_SIZE 8192
/* Uses of an entry within this time may count as one. */
#define USE_NANOSECONDS INT64_C(1000000000)

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
        header->self != sum_header(header) || texts_length(header) > CACHE_TEXTS_LIMIT)
        return false;
    return header->length <= size && sizeof *header + texts_length(header) + header->length +
                                             block_checksums_size(header->length) ==
                                         size;
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
    entry->used = (int64_t)status.st_atim.tv_sec * 1000000000 + status.st_atim.tv_nsec;
    entry->is_newest = status.st_mode & S_ISVTX;
    size = (uint64_t)status.st_size;
    known = size < READ_SIZE ? size : READ_SIZE;
    entry->space = malloc(READ_SIZE);
    if (entry->space == NULL || !cache_file_read(entry->file, entry->space, (size_t)known, 0))
        return false;
    memcpy(&entry->header, entry->space, sizeof entry->header);
    if (!is_sound(&entry->header, size))
        return false;
    entry->identity = block_checksums_identity(&status, entry->header.seed);
    entry->start = sizeof entry->header + texts_length(&entry->header);
    if (entry->start > known) {
        char *larger = realloc(entry->space, entry->start);
        if (larger == NULL)
            return false;
        entry->space = larger;
        if (!cache_file_read(entry->file, larger + known, (size_t)(entry->start - known), known))
            return false;
    } else if (known == size) {
        entry->body = (struct text){entry->space + entry->start, (size_t)entry->header.length};
    }
    slice_texts(entry);
    return entry->header.texts ==
           sum_of((struct text){entry->record.uri.data, texts_length(&entry->header)});
}

/* ---- opening ---- */

/* Takes the entry from memory, without opening its file, if it is there and the file has not
 * changed since. */
static bool recall(const struct cache *cache, struct cache_entry *entry, const char *name)
{
    struct stat status;
    size_t before;

    *entry = (struct cache_entry){.file = -1};
    entry->space = cache_memory_take(cache, name, &status);
    if (entry->space == NULL)
        return false;
    memcpy(entry->name, name, CACHE_NAME_LENGTH + 1);
    memcpy(&entry->header, entry->space, sizeof entry->header);
    entry->used = (int64_t)status.st_atim.tv_sec * 1000000000 + status.st_atim.tv_nsec;
    before = sizeof entry->header + texts_length(&entry->header);
    entry->body = (struct text){entry->space + before, (size_t)entry->header.length};
    slice_texts(entry);
    return true;
}

static bool open_named(const struct cache *cache, struct cache_entry *entry, const char *name,
                       struct text uri)
{
    if (recall(cache, entry, name)) {
        if (text_equal(entry->record.uri, uri))
            return true;
        cache_entry_close(entry);
        return false;
    }
    *entry = (struct cache_entry){.file = cache_file_open(cache, name, O_RDONLY)};
    if (entry->file < 0)
        return false;
    memcpy(entry->name, name, CACHE_NAME_LENGTH + 1);
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
    if (newer.header.kind == CACHE_ENTRY_RECORD && newer.header.seed == entry->header.self) {
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
    if (entry->record.length > CACHE_COPY_LIMIT && !entry->is_newest)
        take_record(cache, entry);
    return true;
}

bool cache_entry_expect_newer(const struct cache_entry *entry)
{
    return fchmod(entry->file, S_IRUSR | S_IWUSR) == 0;
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

struct cache_body cache_entry_body(const struct cache *cache, const struct cache_entry *entry)
{
    struct cache_body body = {
        .cache = cache,
        .file = entry->file,
        .start = entry->start,
        .length = entry->record.length,
        .seed = entry->header.seed,
        .identity = entry->identity,
    };

    memcpy(body.name, entry->name, sizeof body.name);
    return body;
}

static void keep(const struct cache *cache, const struct cache_entry *entry)
{
    size_t length = (size_t)(entry->body.data - entry->space) + entry->body.length +
                    (size_t)block_checksums_size(entry->body.length);

    cache_memory_keep(cache, entry->name, entry->identity, entry->header.seed,
                      (struct text){entry->space, length});
}

/* A body in memory is at most one block. The body of an entry that came from memory, without a
 * file, was checked before it was kept. */
static bool verify_memory(const struct cache *cache, const struct cache_entry *entry)
{
    if (entry->file < 0)
        return true;
    if (entry->body.length == 0 || block_checksums_match(entry->header.seed, 0, entry->body,
                                                         entry->body.data + entry->body.length)) {
        keep(cache, entry);
        return true;
    }
    cache_evict_entry(cache, entry->name);
    return false;
}

bool cache_entry_verify_first(const struct cache *cache, const struct cache_entry *entry)
{
    struct cache_body body;

    if (entry->body.data != NULL)
        return verify_memory(cache, entry);
    body = cache_entry_body(cache, entry);
    return body.length == 0 || block_checksums_check(&body, 0, 1) > 0;
}

bool cache_entry_verify(const struct cache *cache, const struct cache_entry *entry)
{
    struct cache_body body;
    uint64_t offset = 0;

    if (entry->body.data != NULL)
        return verify_memory(cache, entry);
    body = cache_entry_body(cache, entry);
    while (offset < body.length) {
        uint64_t sound = block_checksums_check(&body, offset, body.length - offset);
        if (sound == 0)
            return false;
        offset += sound;
    }
    return true;
}

/* ---- uses ---- */

/* The time of a use is noted if an entry has been stored since the last one, or after a second: the
 * order of uses is only needed to choose what makes room for others. */
void cache_entry_touch(const struct cache *cache, const struct cache_entry *entry)
{
    struct timespec now;
    int file = entry->file;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (entry->used > atomic_load(&cache->shared->stored) &&
        (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - entry->used <= USE_NANOSECONDS)
        return;
    if (file < 0)
        file = cache_file_open(cache, entry->name, O_RDONLY);
    if (file < 0)
        return;
    cache_file_touch(file);
    if (entry->file < 0)
        close(file);
}
