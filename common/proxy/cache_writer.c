/* Writes entries of the cache, and puts them in place when they are whole. */
#include "common/proxy/cache_writer.h"

#include "common/proxy/cache_evict.h"
#include "common/proxy/cache_keeper.h"
#include "common/proxy/cache_removal_count.h"
#include "common/proxy/cache_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

/* How often to make another temporary file if some process removes it before it is locked. */
#define TEMPORARY_TRIES 10
/* Stands for the length of a body that comes in pieces, over time. */
#define GROWS SIZE_MAX

/* How often to make room for one write, and how many bytes at least: others write, too. */
#define ROOM_TRIES 3
#define ROOM_BYTES (256 * 1024)

/* Writes, and makes room if the disk is full. */
static bool write_with_room(const struct cache *cache, int file, struct text data, uint64_t offset)
{
    for (int i = 0; i < ROOM_TRIES; i++) {
        if (cache_file_write(file, data.data, data.length, offset))
            return true;
        if ((errno != ENOSPC && errno != EDQUOT) ||
            !cache_keeper_make_room(cache, data.length + ROOM_BYTES))
            return false;
    }
    return false;
}

/* ---- the beginning ---- */

/* Puts bytes at the end of what is held, or of the file if nothing is held. Those that were
 * received into cache_writer_room() are there already. */
static bool append(const struct cache *cache, struct cache_writer *writer, struct text data)
{
    struct buffer *held = &writer->held;

    if (!writer->holds)
        return write_with_room(cache, writer->file, data, writer->start + writer->header.length);
    if (data.data == held->data + held->length)
        held->length += data.length;
    else
        buffer_add(held, data);
    return !held->overflow;
}

/* Writes what is held, in one call. */
static bool write_held(const struct cache *cache, struct cache_writer *writer)
{
    const struct text held = {writer->held.data, writer->held.length};

    writer->holds = !write_with_room(cache, writer->file, held, 0);
    return !writer->holds;
}

void cache_writer_forget(struct cache_writer *writer)
{
    free(writer->held.data);
    writer->held = (struct buffer){0};
    writer->holds = false;
}

/* Gets memory for the head, and for the body and its sums if that has a length. The header is
 * filled in at the end. */
static bool hold(struct cache_writer *writer, size_t length)
{
    size_t room = (size_t)writer->start;

    if (length != GROWS)
        room += length + (size_t)block_checksums_size(length);
    writer->held = (struct buffer){.data = malloc(room), .capacity = room};
    if (writer->held.data == NULL)
        return false;
    writer->holds = true;
    memset(writer->held.data, 0, sizeof writer->header);
    writer->held.length = sizeof writer->header;
    return true;
}

static bool write_head(const struct cache *cache, struct cache_writer *writer,
                       const struct cache_record *record, size_t length)
{
    struct text texts[5];
    struct checksum sum;

    cache_entry_texts(record, texts);
    writer->header.status = record->status;
    writer->header.minor = record->minor;
    writer->header.requested = record->requested;
    writer->header.received = record->received;
    writer->start = sizeof writer->header;
    checksum_start(&sum, 0);
    for (int i = 0; i < 5; i++) {
        writer->header.lengths[i] = (uint32_t)texts[i].length;
        checksum_add(&sum, texts[i]);
        writer->start += texts[i].length;
    }
    writer->header.texts = checksum_end(&sum);
    if (!hold(writer, length))
        return false;
    for (int i = 0; i < 5; i++)
        buffer_add(&writer->held, texts[i]);
    return length != GROWS || cache_writer_flush(cache, writer);
}

bool cache_writer_flush(const struct cache *cache, struct cache_writer *writer)
{
    if (!write_held(cache, writer))
        return false;
    cache_writer_forget(writer);
    return true;
}

/* Makes a file and locks it: the lock says that a process writes it. If another process takes it
 * for abandoned before that, and removes it, makes another one. Returns -1 if it cannot. */
static int make_temporary(const struct cache *cache, char name[CACHE_NAME_SIZE])
{
    struct stat status;
    bool locked;
    int file;

    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        if (!cache_name_temporary(name))
            return -1;
        file = cache_file_open(cache, name, O_RDWR | O_CREAT | O_EXCL);
        if (file < 0)
            return -1;
        locked = flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (locked && fstat(file, &status) == 0 && status.st_nlink > 0)
            return file;
        close(file);
    }
    return -1;
}

/* Makes a file without a name, if it can get one later. Nobody sees it before it is whole, and the
 * kernel removes it if this process dies. */
static int make_unnamed(const struct cache *cache, char name[CACHE_NAME_SIZE])
{
    return cache->links && cache_name_temporary(name) ? cache_file_make_unnamed(cache) : -1;
}

/* An entry that grows needs a name by which others open it. */
static bool make_file(const struct cache *cache, struct cache_writer *writer, bool grows)
{
    writer->file = grows ? -1 : make_unnamed(cache, writer->temporary);
    writer->unnamed = writer->file >= 0;
    if (!writer->unnamed)
        writer->file = make_temporary(cache, writer->temporary);
    return writer->file >= 0;
}

static bool begin_file(const struct cache *cache, struct cache_writer *writer,
                       const struct cache_record *record, size_t length)
{
    char whole[CACHE_NAME_SIZE];

    cache_name_entry(whole, record->uri, 0, TEXT(""));
    writer->number = cache_name_number(whole);
    writer->removals = record->removals;
    if (!make_file(cache, writer, length == GROWS))
        return false;
    writer->header.seed = cache_name_half(writer->temporary, 0);
    block_checksums_start(&writer->blocks, writer->header.seed);
    if (write_head(cache, writer, record, length))
        return true;
    cache_writer_end(cache, writer);
    return false;
}

/* Adds the bytes to the size of the cache before they are written, so that many writers together
 * do not go beyond its bound. Where they would, room is made for those that come later. Bytes that
 * are counted here and not yet written when cache_evict.c counts the files are lost to the count.
 */
static bool reserve(const struct cache *cache, struct cache_writer *writer, uint64_t bytes)
{
    if (writer->start + writer->header.length + bytes > cache->limit / 2)
        return false;
    cache_shared_add_size(cache, (int64_t)bytes);
    if (cache_shared_size(cache) <= cache_evict_limit(cache)) {
        writer->counted += bytes;
        return true;
    }
    cache_shared_add_size(cache, -(int64_t)bytes);
    if (cache_shared_size(cache) > cache->limit)
        cache_keeper_trim(cache);
    return false;
}

/* Finds the generation of the responses that vary on the record's list. Another list begins a new
 * generation: responses of the old one are not found any more. */
static bool find_generation(const struct cache *cache, const struct cache_record *record,
                            uint64_t *generation)
{
    struct cache_record index = {
        .uri = record->uri, .list = record->list, .removals = record->removals};
    struct cache_writer writer = {.header.kind = CACHE_ENTRY_INDEX, .file = -1};
    struct cache_entry entry;
    bool made;

    cache_name_entry(writer.name, record->uri, 0, TEXT(""));
    if (cache_entry_open(cache, &entry, writer.name, record->uri)) {
        bool same =
            entry.header.kind == CACHE_ENTRY_INDEX && text_equal(entry.record.list, record->list);
        *generation = entry.header.generation;
        cache_entry_close(&entry);
        if (same)
            return true;
    }
    if (getrandom(generation, sizeof *generation, 0) != (ssize_t)sizeof *generation)
        return false;
    *generation |= 1; /* 0 is that of responses that do not vary */
    writer.header.generation = *generation;
    made = begin_file(cache, &writer, &index, 0) && cache_writer_commit(cache, &writer);
    cache_writer_end(cache, &writer);
    return made;
}

static bool begin(const struct cache *cache, struct cache_writer *writer,
                  const struct cache_record *record, struct text request_fields, size_t length)
{
    struct cache_record whole = *record;
    uint64_t generation = 0;
    char *space = NULL;
    bool begun;

    *writer = (struct cache_writer){.file = -1};
    if (cache_evict_is_due(cache))
        cache_keeper_trim(cache);
    whole.selected = TEXT("");
    if (record->fields.length > CACHE_HEAD_LIMIT || record->uri.length > CACHE_HEAD_LIMIT)
        return false;
    if (record->list.length > 0) {
        space = cache_entry_select(record->list, request_fields, &whole.selected);
        if (space == NULL || whole.selected.length > CACHE_HEAD_LIMIT ||
            !find_generation(cache, record, &generation)) {
            free(space);
            return false;
        }
    }
    writer->header.kind = record->status == 206 ? CACHE_ENTRY_PART : CACHE_ENTRY_RESPONSE;
    writer->header.generation = generation;
    cache_name_entry(writer->name, record->uri, generation, whole.selected);
    if (writer->header.kind == CACHE_ENTRY_PART)
        writer->name[0] = CACHE_NAME_PART;
    begun = begin_file(cache, writer, &whole, length);
    free(space);
    if (!begun || length == GROWS || length == 0 || reserve(cache, writer, length))
        return begun;
    cache_writer_end(cache, writer);
    return false;
}

bool cache_writer_begin(const struct cache *cache, struct cache_writer *writer,
                        const struct cache_record *record, struct text request_fields)
{
    return begin(cache, writer, record, request_fields, GROWS);
}

bool cache_writer_begin_short(const struct cache *cache, struct cache_writer *writer,
                              const struct cache_record *record, struct text request_fields,
                              size_t length)
{
    return begin(cache, writer, record, request_fields, length);
}

/* ---- the body ---- */

struct text cache_writer_held(const struct cache_writer *writer)
{
    const char *body = writer->held.data;

    if (body == NULL)
        return (struct text){0};
    return (struct text){body + writer->start, (size_t)writer->header.length};
}

struct buffer cache_writer_room(const struct cache_writer *writer)
{
    const struct buffer *held = &writer->held;

    if (!writer->holds)
        return (struct buffer){0};
    return (struct buffer){.data = held->data + held->length,
                           .capacity = held->capacity - held->length};
}

/* A body whose length was known was counted as a whole. */
bool cache_writer_add(const struct cache *cache, struct cache_writer *writer, struct text data)
{
    bool counted = writer->header.length + data.length <= writer->counted;

    if ((!counted && !reserve(cache, writer, data.length)) || !append(cache, writer, data))
        return false;
    writer->header.length += data.length;
    return block_checksums_add(&writer->blocks, data);
}

/* ---- the end ---- */

static bool is_outdated(const struct cache *cache, const struct cache_writer *writer)
{
    return cache_removal_since(cache, writer->number, writer->removals);
}

/* Exchanges the names if an older file is there: some file systems write a file to the disk at once
 * when a rename replaces another one, but not when the two change places. */
static bool replace(const struct cache *cache, const struct cache_writer *writer, struct stat *old)
{
    const int directory = cache->directory;

    if (fstatat(directory, writer->name, old, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(old->st_mode)) {
        *old = (struct stat){0};
    } else if (renameat2(directory, writer->temporary, directory, writer->name, RENAME_EXCHANGE) ==
               0) {
        unlinkat(directory, writer->temporary, 0);
        return true;
    }
    return renameat(directory, writer->temporary, directory, writer->name) == 0;
}

/* Gives the file its name if no other one has it. */
static bool take_name(const struct cache *cache, const struct cache_writer *writer)
{
    const int directory = cache->directory;

    return writer->unnamed ? cache_file_link(cache, writer->file, writer->name)
                           : renameat2(directory, writer->temporary, directory, writer->name,
                                       RENAME_NOREPLACE) == 0;
}

/* It is locked first: see make_temporary(). */
bool cache_writer_name(const struct cache *cache, struct cache_writer *writer)
{
    if (!writer->unnamed)
        return true;
    flock(writer->file, LOCK_EX | LOCK_NB);
    writer->unnamed = !cache_file_link(cache, writer->file, writer->temporary);
    return !writer->unnamed;
}

/* Only a file with a name can replace another one. Most entries are new: looks for an older file
 * only if the name is taken, or if the file system cannot tell. `old` becomes the state of the
 * older file; its size is 0 if there is none. */
static bool put_in_place(const struct cache *cache, struct cache_writer *writer, struct stat *old)
{
    *old = (struct stat){0};
    return take_name(cache, writer) ||
           (cache_writer_name(cache, writer) && replace(cache, writer, old));
}

/* Writes the sums behind the body, and then the header, which makes the file an entry. */
static bool write_rest(const struct cache *cache, struct cache_writer *writer)
{
    const struct text header = {(const char *)&writer->header, sizeof writer->header};
    struct text sums;

    cache_entry_seal(&writer->header);
    if (!block_checksums_finish(&writer->blocks, &sums) || !append(cache, writer, sums))
        return false;
    if (!writer->holds)
        return write_with_room(cache, writer->file, header, 0);
    memcpy(writer->held.data, header.data, header.length);
    return write_held(cache, writer);
}

static bool finish_file(const struct cache *cache, struct cache_writer *writer)
{
    const uint64_t length = writer->header.length;
    const struct stat new = {
        .st_size = (off_t)(writer->start + length + block_checksums_size(length)),
    };
    struct stat old;

    if (!write_rest(cache, writer))
        return false;
    atomic_store(&cache->shared->stored, cache_file_touch(writer->file));
    if (!put_in_place(cache, writer, &old))
        return false;
    cache_shared_add_size(cache, cache_file_disk_size(&new) - (int64_t)writer->counted -
                                     cache_file_disk_size(&old));
    if (old.st_size > CACHE_COPY_LIMIT && writer->header.kind == CACHE_ENTRY_RESPONSE)
        cache_shared_add_size(cache, -cache_evict_record(cache, writer->name));
    return true;
}

static bool commit(const struct cache *cache, struct cache_writer *writer)
{
    writer->committed = !is_outdated(cache, writer) && finish_file(cache, writer);
    if (!writer->committed)
        return false;
    /* A removal is counted before it removes: it removes this entry, or is noticed here. */
    if (is_outdated(cache, writer)) {
        cache_evict_entry(cache, writer->name);
        return false;
    }
    if (cache_shared_size(cache) > cache->limit)
        cache_keeper_trim(cache);
    return true;
}

bool cache_writer_commit(const struct cache *cache, struct cache_writer *writer)
{
    return commit(cache, writer);
}

void cache_writer_end(const struct cache *cache, struct cache_writer *writer)
{
    if (writer->file < 0)
        return;
    block_checksums_end(&writer->blocks);
    cache_writer_forget(writer);
    close(writer->file);
    writer->file = -1;
    if (writer->committed)
        return;
    if (!writer->unnamed)
        unlinkat(cache->directory, writer->temporary, 0);
    cache_shared_add_size(cache, -(int64_t)writer->counted);
}

/* ---- updates ---- */

/* Returns false if the body does not have its checksum any more: it must not get a new one. */
static bool copy_body(const struct cache *cache, const struct cache_entry *entry,
                      struct cache_writer *writer)
{
    size_t size = (size_t)entry->record.length;
    char *space;
    bool good;

    if (!cache_entry_verify(cache, entry))
        return false;
    if (entry->body.data != NULL)
        return cache_writer_add(cache, writer, entry->body);
    space = malloc(size);
    good = space != NULL && cache_file_read(entry->file, space, size, entry->start) &&
           cache_writer_add(cache, writer, (struct text){space, size});
    free(space);
    return good;
}

/* Turns the entry that was begun into a newer record of the old one. Returns false if it would have
 * another name. */
static bool commit_record(const struct cache *cache, const struct cache_entry *entry,
                          struct cache_writer *writer)
{
    if (strcmp(writer->name, entry->name) != 0)
        return false;
    cache_name_other(writer->name, CACHE_NAME_RECORD, entry->name);
    writer->header.kind = CACHE_ENTRY_RECORD;
    writer->header.seed = entry->header.self;
    return cache_entry_expect_newer(entry) && commit(cache, writer);
}

bool cache_writer_update(const struct cache *cache, const struct cache_entry *entry,
                         const struct cache_record *record, struct text request_fields)
{
    struct cache_writer writer;
    bool large = entry->record.length > CACHE_COPY_LIMIT;
    size_t length = large ? 0 : (size_t)entry->record.length;
    bool updated = cache_writer_begin_short(cache, &writer, record, request_fields, length);

    if (updated && large)
        updated = commit_record(cache, entry, &writer);
    else if (updated)
        updated = copy_body(cache, entry, &writer) && cache_writer_commit(cache, &writer);
    cache_writer_end(cache, &writer);
    return updated;
}
