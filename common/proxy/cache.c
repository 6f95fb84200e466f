#include "common/proxy/cache.h"

#include "common/proxy/freshness.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "fvtcach1"
/* What is read of an entry at once: most fit into it. */
#define READ_SIZE 8192
/* A file takes at least this much of the disk. */
#define BLOCK UINT64_C(4096)
/* What is removed when there is too much: until so many percent of the limit are left. */
#define TRIM_PERCENT 90
/* How often somebody else may remove a file that was made just now. */
#define MAKING_LIMIT 10
/* Milliseconds that the clock of one worker may be behind that of another. */
#define CLOCK_DIFFERENCE 1000
/* A larger body is not copied when its record is renewed. */
#define COPY_LIMIT (64 * 1024)
/* Of all texts of an entry: what is larger was not written here. */
#define TEXTS_LIMIT (4 * CACHE_HEAD_LIMIT)
/* What is shared about names: those that share a slot disturb each other, and no more. */
#define SLOTS 4096

/* Of an entry: a letter and two numbers. */
#define NAME_LENGTH 33

#define ACCOUNT "account"
#define LOCKS   "locks"

enum kind {
    KIND_REPLY = 1,
    KIND_VARIES, /* tells which fields the replies vary on, which have files of their own */
    KIND_RECORD, /* the record of a large reply, newer than in the file that has the body */
};

struct cache_shared {
    _Atomic int64_t size;
    _Atomic bool counted; /* the size is that of what there is */
    _Atomic uint64_t passes[SLOTS];
    _Atomic uint64_t removals[SLOTS];
    _Atomic uint64_t moves[SLOTS];
    _Atomic int64_t advanced[SLOTS];   /* in monotonic milliseconds */
    _Atomic int64_t late[SLOTS];       /* likewise: when a fetch was given up, */
    _Atomic uint64_t late_name[SLOTS]; /* and that of which number */
};

/* ---- files ---- */

static int open_file(const struct cache *cache, const char *name, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        .mode = flags & O_CREAT ? 0600 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };

    return (int)syscall(SYS_openat2, cache->directory, name, &how, sizeof how);
}

static bool read_all(int file, void *to, size_t size, uint64_t offset)
{
    char *space = to;

    while (size > 0) {
        ssize_t count = pread(file, space, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        space += count;
        size -= (size_t)count;
        offset += (uint64_t)count;
    }
    return true;
}

static bool write_all(int file, const void *from, size_t size, uint64_t offset)
{
    const char *bytes = from;

    while (size > 0) {
        ssize_t count = pwrite(file, bytes, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        bytes += count;
        size -= (size_t)count;
        offset += (uint64_t)count;
    }
    return true;
}

static int64_t on_disk(const struct stat *status)
{
    return (int64_t)(((uint64_t)status->st_size + BLOCK - 1) / BLOCK * BLOCK);
}

/* The precise time tells apart what was used within the same tick. */
static void stamp(int file)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

    clock_gettime(CLOCK_REALTIME, &times[1]);
    futimens(file, times);
}

/* ---- names ---- */

static void write_name(char name[CACHE_NAME_SIZE], char kind, const uint64_t number[2])
{
    snprintf(name, CACHE_NAME_SIZE, "%c%016llx%016llx", kind, (unsigned long long)number[0],
             (unsigned long long)number[1]);
}

static void name_entry(char name[CACHE_NAME_SIZE], struct text uri, uint64_t generation,
                       struct text selected)
{
    uint64_t number[2];

    for (unsigned i = 0; i < 2; i++) {
        struct checksum sum;
        checksum_start(&sum, generation + i);
        checksum_add(&sum, uri);
        checksum_add(&sum, TEXT("\n"));
        checksum_add(&sum, selected);
        number[i] = checksum_end(&sum);
    }
    write_name(name, 'e', number);
}

static bool name_temporary(char name[CACHE_NAME_SIZE])
{
    uint64_t number[2];

    if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    write_name(name, 't', number);
    return true;
}

/* Of another file of the same entry: 'e' has its body, 'r' a newer record. */
static void name_other(char name[CACHE_NAME_SIZE], char kind, const char *other)
{
    memcpy(name, other, NAME_LENGTH + 1);
    name[0] = kind;
}

/* A number that stands for the entry of a name. */
static uint64_t number_of(const char *name)
{
    return strtoull(name + 17, NULL, 16);
}

static size_t slot_of(const char *name)
{
    return number_of(name) % SLOTS;
}

/* ---- removing ---- */

/* How much of the disk that gives back. */
static int64_t unlink_file(const struct cache *cache, const char *name)
{
    struct stat status;
    bool known = fstatat(cache->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0;

    return unlinkat(cache->directory, name, 0) == 0 && known ? on_disk(&status) : 0;
}

static int64_t unlink_record(const struct cache *cache, const char *entry)
{
    char name[CACHE_NAME_SIZE];

    name_other(name, 'r', entry);
    return unlink_file(cache, name);
}

static int64_t unlink_entry(const struct cache *cache, const char *name)
{
    int64_t size = unlink_file(cache, name);

    return size > COPY_LIMIT ? size + unlink_record(cache, name) : size;
}

static void remove_entry(const struct cache *cache, const char *name)
{
    atomic_fetch_sub(&cache->shared->size, unlink_entry(cache, name));
}

/* ---- what too much is ---- */

struct used {
    int64_t when; /* in nanoseconds */
    int64_t size;
    char name[CACHE_NAME_SIZE];
};

struct inventory {
    struct used *all;
    size_t count, room;
    int64_t size;
};

static bool add_used(struct inventory *inventory, const char *name, const struct stat *status)
{
    struct used *used;

    if (inventory->count == inventory->room) {
        size_t room = inventory->room * 2 + 256;
        used = realloc(inventory->all, room * sizeof *used);
        if (used == NULL)
            return false;
        inventory->all = used;
        inventory->room = room;
    }
    used = &inventory->all[inventory->count++];
    used->when = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
    used->size = on_disk(status);
    inventory->size += used->size;
    memcpy(used->name, name, NAME_LENGTH + 1);
    return true;
}

/* Removes what nobody is writing any more: who does has a lock on it. Holds that meanwhile, so that
 * who has just made the file and has no lock yet learns of it. */
static bool remove_abandoned(const struct cache *cache, const char *name)
{
    int file = open_file(cache, name, O_RDONLY);
    bool abandoned = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 &&
                     unlinkat(cache->directory, name, 0) == 0;

    if (file >= 0)
        close(file);
    return abandoned;
}

/* Whether there is an entry that the record could be of. */
static bool is_of_entry(const struct cache *cache, const char *record)
{
    char name[CACHE_NAME_SIZE];

    name_other(name, 'e', record);
    return faccessat(cache->directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void look_at(const struct cache *cache, struct inventory *inventory, const char *name)
{
    struct stat status;

    if (strchr("etr", name[0]) == NULL || strlen(name) != NAME_LENGTH ||
        fstatat(cache->directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(status.st_mode))
        return;
    if (name[0] == 'e')
        add_used(inventory, name, &status);
    else if (name[0] == 't' ? !remove_abandoned(cache, name) : is_of_entry(cache, name))
        inventory->size += on_disk(&status);
    else if (name[0] == 'r')
        unlinkat(cache->directory, name, 0);
}

static bool take_inventory(const struct cache *cache, struct inventory *inventory)
{
    int file = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = file >= 0 ? fdopendir(file) : NULL;
    const struct dirent *entry;

    *inventory = (struct inventory){0};
    if (directory == NULL) {
        if (file >= 0)
            close(file);
        return false;
    }
    while ((entry = readdir(directory)) != NULL)
        look_at(cache, inventory, entry->d_name);
    closedir(directory);
    return true;
}

static int by_use(const void *a, const void *b)
{
    const struct used *first = a, *second = b;

    return first->when < second->when ? -1 : first->when > second->when;
}

static void remove_least_used(const struct cache *cache, struct inventory *inventory)
{
    int64_t left = (int64_t)(cache->limit / 100 * TRIM_PERCENT);

    if (inventory->size <= (int64_t)cache->limit || inventory->count == 0)
        return;
    qsort(inventory->all, inventory->count, sizeof *inventory->all, by_use);
    for (size_t i = 0; i < inventory->count && inventory->size > left; i++)
        inventory->size -= unlink_entry(cache, inventory->all[i].name);
}

/* Counts what there is, and removes what was not used for longest, if that is too much. One at a
 * time does so; what others add meanwhile stays counted. */
static void trim(const struct cache *cache)
{
    int lock = open_file(cache, ACCOUNT, O_RDWR | O_CREAT);
    struct inventory inventory;
    int64_t before;

    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
        before = atomic_load(&cache->shared->size);
        if (take_inventory(cache, &inventory)) {
            remove_least_used(cache, &inventory);
            atomic_fetch_add(&cache->shared->size,
                             (int64_t)((uint64_t)inventory.size - (uint64_t)before));
            atomic_store(&cache->shared->counted, true);
            free(inventory.all);
        }
    }
    if (lock >= 0)
        close(lock);
}

uint64_t cache_size(const struct cache *cache)
{
    int64_t size = atomic_load(&cache->shared->size);

    return size > 0 ? (uint64_t)size : 0;
}

/* Beyond this nothing is added: what many write at once is trimmed when the first of them is done.
 */
static uint64_t most(const struct cache *cache)
{
    return cache->limit * 3 / 2;
}

/* Who was killed while he wrote left what he had counted, and anybody may have damaged the account:
 * what it says cannot be, or keeps all else out, is counted anew. */
static void check_account(const struct cache *cache)
{
    if (!atomic_load(&cache->shared->counted) || atomic_load(&cache->shared->size) < 0 ||
        cache_size(cache) > most(cache))
        trim(cache);
}

/* ---- the account ---- */

/* The store whose account this process has mapped. */
static struct cache mapped;

/* Whether the account was shorter than it must be, and is not any more. */
static bool lengthen_account(void)
{
    const off_t size = sizeof *mapped.shared;
    int file = open_file(&mapped, ACCOUNT, O_RDWR | O_CREAT);
    struct stat status;
    bool mended = file >= 0 && fstat(file, &status) == 0 && status.st_size < size &&
                  fallocate(file, 0, 0, size) == 0;

    if (file >= 0)
        close(file);
    return mended;
}

/* Whoever makes the account shorter takes the memory away from all that have it mapped, and who
 * touches that is told so by a signal. It begins anew then: for all, or if that cannot be, for this
 * process and its children. Nothing is called here that a signal handler may not call. */
static void mend_account(int signal, siginfo_t *fault, void *context)
{
    const char *at = fault->si_addr, *start = (const char *)mapped.shared;
    const size_t size = sizeof *mapped.shared;
    int error = errno;

    (void)context;
    if (start == NULL || at < start || at >= start + size ||
        (!lengthen_account() && mmap(mapped.shared, size, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED))
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* it comes again */
    errno = error;
}

/* Shared by all that use the directory; where the disk is full, by the processes of this server. */
static bool open_shared(struct cache *cache)
{
    const size_t size = sizeof *cache->shared;
    const struct sigaction action = {.sa_sigaction = mend_account, .sa_flags = SA_SIGINFO};
    int file = open_file(cache, ACCOUNT, O_RDWR | O_CREAT);
    bool shared = file >= 0 && posix_fallocate(file, 0, (off_t)size) == 0;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        shared ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, shared ? file : -1, 0);

    if (file >= 0)
        close(file);
    if (memory == MAP_FAILED)
        return false;
    cache->shared = memory;
    atomic_store(&cache->shared->counted, false);
    mapped = *cache;
    sigaction(SIGBUS, &action, NULL);
    return true;
}

/* ---- opening ---- */

static bool open_directory(struct cache *cache, const char *path)
{
    struct stat status;

    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        warn("cannot make the cache directory '%s'", path);
        return false;
    }
    cache->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->directory < 0 || fstat(cache->directory, &status) < 0) {
        warn("cannot open the cache directory '%s'", path);
        return false;
    }
    cache->owner = geteuid();
    if (status.st_uid == cache->owner && !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return true;
    warnx("the cache directory '%s' must belong to this user, and nobody else may write to it",
          path);
    return false;
}

bool cache_open(struct cache *cache, const char *path, uint64_t limit)
{
    int locks;

    *cache = (struct cache){.directory = -1, .limit = limit};
    if (!open_directory(cache, path))
        return false;
    locks = open_file(cache, LOCKS, O_RDWR | O_CREAT);
    if (locks < 0 || !open_shared(cache)) {
        warn("cannot write to the cache directory '%s'", path);
        return false;
    }
    close(locks);
    trim(cache);
    return true;
}

void cache_close(struct cache *cache)
{
    if (mapped.shared == cache->shared)
        mapped = (struct cache){.directory = -1};
    if (cache->shared != NULL)
        munmap(cache->shared, sizeof *cache->shared);
    if (cache->directory >= 0)
        close(cache->directory);
}

/* ---- reading ---- */

static uint64_t sum_header(const struct cache_header *header)
{
    struct checksum sum;

    checksum_start(&sum, 0);
    checksum_add(&sum, (struct text){(const char *)header, offsetof(struct cache_header, self)});
    return checksum_end(&sum);
}

static uint64_t sum_of(struct text bytes)
{
    struct checksum sum;

    checksum_start(&sum, 0);
    checksum_add(&sum, bytes);
    return checksum_end(&sum);
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

/* Reads all but a body that is large. */
static bool read_entry(const struct cache *cache, struct cache_entry *entry)
{
    struct stat status;
    uint64_t size, known;

    if (fstat(entry->file, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != cache->owner || status.st_size < (off_t)sizeof entry->header)
        return false;
    size = (uint64_t)status.st_size;
    known = size < READ_SIZE ? size : READ_SIZE;
    entry->space = malloc(READ_SIZE);
    if (entry->space == NULL || !read_all(entry->file, entry->space, (size_t)known, 0))
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
        if (!read_all(entry->file, larger + known, (size_t)(entry->start - known), known))
            return false;
    } else if (known == size) {
        entry->body = (struct text){entry->space + entry->start, (size_t)(size - entry->start)};
    }
    slice_texts(entry);
    return entry->header.texts ==
           sum_of((struct text){entry->record.uri.data, texts_length(&entry->header)});
}

/* Opens the file of that name, if it is about the URI. What is damaged is removed. */
static bool open_named(const struct cache *cache, struct cache_entry *entry, const char *name,
                       struct text uri)
{
    *entry = (struct cache_entry){.file = open_file(cache, name, O_RDONLY)};
    if (entry->file < 0)
        return false;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    errno = 0;
    if (read_entry(cache, entry)) {
        if (text_equal(entry->record.uri, uri))
            return true;
    } else if (errno != EMFILE && errno != ENOMEM) {
        remove_entry(cache, name);
    }
    cache_leave(entry);
    return false;
}

/* A large entry may have got a newer record: one of exactly this entry. */
static void take_record(const struct cache *cache, struct cache_entry *entry)
{
    struct cache_entry newer;
    char name[CACHE_NAME_SIZE];

    name_other(name, 'r', entry->name);
    if (!open_named(cache, &newer, name, entry->record.uri))
        return;
    if (newer.header.kind == KIND_RECORD && newer.header.sum == entry->header.self) {
        char *space = entry->space;
        newer.record.length = entry->record.length;
        entry->record = newer.record;
        entry->space = newer.space;
        newer.space = space;
    }
    cache_leave(&newer);
}

static bool open_entry(const struct cache *cache, struct cache_entry *entry, const char *name,
                       struct text uri)
{
    if (!open_named(cache, entry, name, uri))
        return false;
    if (entry->record.length > COPY_LIMIT)
        take_record(cache, entry);
    return true;
}

/* What the list selects from a request; NULL if there is no memory. The caller frees it. */
static char *select_fields(struct text list, struct text request_fields, struct text *selected)
{
    size_t room = 2 * request_fields.length + 2 * list.length + 64;
    struct buffer buffer = {.data = malloc(room), .capacity = room};

    if (buffer.data == NULL)
        return NULL;
    freshness_select(list, request_fields, &buffer);
    *selected = (struct text){buffer.data, buffer.length};
    return buffer.data;
}

/* The one of several replies whose request had the same fields. */
static enum cache_found find_selected(const struct cache *cache, struct text uri,
                                      struct text request_fields, struct cache_entry *entry,
                                      char name[CACHE_NAME_SIZE])
{
    struct cache_entry index = *entry;
    enum cache_found found = CACHE_OTHER;
    struct text selected;
    char *space = select_fields(index.record.list, request_fields, &selected);

    stamp(index.file); /* it is not to go before what is found by it */
    *entry = (struct cache_entry){.file = -1};
    if (space != NULL) {
        name_entry(name, uri, index.header.generation, selected);
        if (open_entry(cache, entry, name, uri)) {
            if (entry->header.kind == KIND_REPLY && text_equal(entry->record.selected, selected))
                found = CACHE_FOUND;
            else
                cache_leave(entry);
        }
    }
    free(space);
    cache_leave(&index);
    return found;
}

enum cache_found cache_find(const struct cache *cache, struct text uri, struct text request_fields,
                            struct cache_entry *entry, char name[CACHE_NAME_SIZE])
{
    name_entry(name, uri, 0, TEXT(""));
    if (!open_entry(cache, entry, name, uri))
        return CACHE_NOTHING;
    if (entry->header.kind == KIND_REPLY)
        return CACHE_FOUND;
    if (entry->header.kind != KIND_VARIES) {
        cache_leave(entry);
        return CACHE_NOTHING;
    }
    return find_selected(cache, uri, request_fields, entry, name);
}

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
        good = read_all(entry->file, space, part, entry->start + offset);
        checksum_add(&sum, (struct text){space, part});
        offset += part;
    }
    free(space);
    return good && checksum_end(&sum) == entry->header.sum;
}

bool cache_verify(const struct cache *cache, struct cache_entry *entry)
{
    bool good;

    if (entry->body.data != NULL)
        good = sum_of(entry->body) == entry->header.sum;
    else
        good = entry->record.length > CACHE_VERIFY_LIMIT || verify_file(entry);
    if (!good)
        remove_entry(cache, entry->name);
    return good;
}

void cache_touch(const struct cache_entry *entry)
{
    stamp(entry->file);
}

void cache_leave(struct cache_entry *entry)
{
    if (entry->file >= 0)
        close(entry->file);
    free(entry->space);
    *entry = (struct cache_entry){.file = -1};
}

/* ---- writing ---- */

static bool write_head(struct cache_writer *writer, const struct cache_record *record)
{
    const struct text texts[5] = {record->uri, record->list, record->selected, record->reason,
                                  record->fields};
    struct checksum sum;

    memcpy(writer->header.magic, MAGIC, sizeof writer->header.magic);
    writer->header.status = record->status;
    writer->header.minor = record->minor;
    writer->header.requested = record->requested;
    writer->header.received = record->received;
    writer->start = sizeof writer->header;
    checksum_start(&sum, 0);
    for (int i = 0; i < 5; i++) {
        writer->header.lengths[i] = (uint32_t)texts[i].length;
        if (!write_all(writer->file, texts[i].data, texts[i].length, writer->start))
            return false;
        checksum_add(&sum, texts[i]);
        writer->start += texts[i].length;
    }
    writer->header.texts = checksum_end(&sum);
    checksum_start(&writer->sum, 0);
    return true;
}

/* Makes a file and locks it, as one that is being written. -1: it cannot; a file that was taken for
 * abandoned before it had its lock is none. */
static int make_temporary(const struct cache *cache, char name[CACHE_NAME_SIZE])
{
    struct stat status;
    bool locked;
    int file;

    for (int i = 0; i < MAKING_LIMIT; i++) {
        if (!name_temporary(name))
            return -1;
        file = open_file(cache, name, O_RDWR | O_CREAT | O_EXCL);
        if (file < 0)
            return -1;
        locked = flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (locked && fstat(file, &status) == 0 && status.st_nlink > 0)
            return file;
        close(file);
    }
    return -1;
}

/* A file that has no name yet by which it could be found. */
static bool begin_file(const struct cache *cache, struct cache_writer *writer,
                       const struct cache_record *record)
{
    char whole[CACHE_NAME_SIZE];

    name_entry(whole, record->uri, 0, TEXT(""));
    writer->slot = slot_of(whole);
    writer->removals = record->removals;
    writer->file = make_temporary(cache, writer->temporary);
    if (writer->file < 0)
        return false;
    if (write_head(writer, record))
        return true;
    cache_end(cache, writer);
    return false;
}

/* The generation of the replies that vary on that list. Another list begins a new one: what was
 * stored by the old one is not found any more. */
static bool find_generation(const struct cache *cache, const struct cache_record *record,
                            uint64_t *generation)
{
    struct cache_record index = {
        .uri = record->uri, .list = record->list, .removals = record->removals};
    struct cache_writer writer = {.header.kind = KIND_VARIES, .file = -1};
    struct cache_entry entry;
    bool made;

    name_entry(writer.name, record->uri, 0, TEXT(""));
    if (open_entry(cache, &entry, writer.name, record->uri)) {
        bool same = entry.header.kind == KIND_VARIES && text_equal(entry.record.list, record->list);
        *generation = entry.header.generation;
        cache_leave(&entry);
        if (same)
            return true;
    }
    if (getrandom(generation, sizeof *generation, 0) != (ssize_t)sizeof *generation)
        return false;
    *generation |= 1; /* 0 is that of replies that do not vary */
    writer.header.generation = *generation;
    made = begin_file(cache, &writer, &index) && cache_commit(cache, &writer);
    cache_end(cache, &writer);
    return made;
}

bool cache_begin(const struct cache *cache, struct cache_writer *writer,
                 const struct cache_record *record, struct text request_fields)
{
    struct cache_record whole = *record;
    uint64_t generation = 0;
    char *space = NULL;
    bool begun;

    *writer = (struct cache_writer){.file = -1};
    check_account(cache);
    whole.selected = TEXT("");
    if (record->fields.length + record->uri.length > CACHE_HEAD_LIMIT)
        return false;
    if (record->list.length > 0) {
        space = select_fields(record->list, request_fields, &whole.selected);
        if (space == NULL || whole.selected.length > CACHE_HEAD_LIMIT ||
            !find_generation(cache, record, &generation)) {
            free(space);
            return false;
        }
    }
    writer->header.kind = KIND_REPLY;
    writer->header.generation = generation;
    name_entry(writer->name, record->uri, generation, whole.selected);
    begun = begin_file(cache, writer, &whole);
    free(space);
    return begun;
}

bool cache_write(const struct cache *cache, struct cache_writer *writer, struct text data)
{
    uint64_t end = writer->start + writer->header.length;

    if (end + data.length > cache->limit / 2 || cache_size(cache) > most(cache) ||
        !write_all(writer->file, data.data, data.length, end))
        return false;
    atomic_fetch_add_explicit(&cache->shared->size, (int64_t)data.length, memory_order_relaxed);
    writer->counted += data.length;
    checksum_add(&writer->sum, data);
    writer->header.length += data.length;
    return true;
}

static bool is_outdated(const struct cache *cache, const struct cache_writer *writer)
{
    return atomic_load(&cache->shared->removals[writer->slot]) != writer->removals;
}

/* Some file systems write to the disk what a rename puts in the place of another file, but not what
 * changes places with it. */
static bool put_in_place(const struct cache *cache, const struct cache_writer *writer,
                         bool replaces)
{
    const int directory = cache->directory;

    if (replaces &&
        renameat2(directory, writer->temporary, directory, writer->name, RENAME_EXCHANGE) == 0) {
        unlinkat(directory, writer->temporary, 0);
        return true;
    }
    return renameat(directory, writer->temporary, directory, writer->name) == 0;
}

static bool finish_file(const struct cache *cache, struct cache_writer *writer)
{
    struct stat old, new;
    bool replaces = fstatat(cache->directory, writer->name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(old.st_mode);

    writer->header.self = sum_header(&writer->header);
    if (!write_all(writer->file, &writer->header, sizeof writer->header, 0) ||
        fstat(writer->file, &new) < 0)
        return false;
    stamp(writer->file);
    if (!put_in_place(cache, writer, replaces))
        return false;
    atomic_fetch_add(&cache->shared->size,
                     on_disk(&new) - (int64_t)writer->counted - (replaces ? on_disk(&old) : 0));
    if (replaces && writer->header.kind == KIND_REPLY && old.st_size > COPY_LIMIT)
        atomic_fetch_sub(&cache->shared->size, unlink_record(cache, writer->name));
    return true;
}

static bool commit(const struct cache *cache, struct cache_writer *writer, uint64_t sum)
{
    writer->header.sum = sum;
    writer->committed = !is_outdated(cache, writer) && finish_file(cache, writer);
    if (!writer->committed)
        return false;
    /* Who removes counts first: one of the two sees the other. */
    if (is_outdated(cache, writer)) {
        remove_entry(cache, writer->name);
        return false;
    }
    if (cache_size(cache) > cache->limit)
        trim(cache);
    return true;
}

bool cache_commit(const struct cache *cache, struct cache_writer *writer)
{
    return commit(cache, writer, checksum_end(&writer->sum));
}

void cache_end(const struct cache *cache, struct cache_writer *writer)
{
    if (writer->file < 0)
        return;
    close(writer->file);
    writer->file = -1;
    if (writer->committed)
        return;
    unlinkat(cache->directory, writer->temporary, 0);
    atomic_fetch_sub(&cache->shared->size, (int64_t)writer->counted);
}

/* A body that was damaged meanwhile is not given a new checksum. */
static bool copy_body(const struct cache *cache, const struct cache_entry *entry,
                      struct cache_writer *writer)
{
    size_t size = (size_t)entry->record.length;
    char *space;
    bool good;

    if (entry->body.data != NULL)
        return cache_write(cache, writer, entry->body);
    space = malloc(size);
    good = space != NULL && read_all(entry->file, space, size, entry->start) &&
           cache_write(cache, writer, (struct text){space, size});
    free(space);
    return good && checksum_end(&writer->sum) == entry->header.sum;
}

/* What was begun becomes the record of the entry, unless it would be another one. */
static bool commit_record(const struct cache *cache, const struct cache_entry *entry,
                          struct cache_writer *writer)
{
    if (strcmp(writer->name, entry->name) != 0)
        return false;
    name_other(writer->name, 'r', entry->name);
    writer->header.kind = KIND_RECORD;
    return commit(cache, writer, entry->header.self);
}

bool cache_renew(const struct cache *cache, const struct cache_entry *entry,
                 const struct cache_record *record, struct text request_fields)
{
    struct cache_writer writer;
    bool renewed = cache_begin(cache, &writer, record, request_fields);

    if (renewed && entry->record.length > COPY_LIMIT)
        renewed = commit_record(cache, entry, &writer);
    else if (renewed)
        renewed = copy_body(cache, entry, &writer) && cache_commit(cache, &writer);
    cache_end(cache, &writer);
    return renewed;
}

uint64_t cache_removals(const struct cache *cache, struct text uri)
{
    char name[CACHE_NAME_SIZE];

    name_entry(name, uri, 0, TEXT(""));
    return atomic_load(&cache->shared->removals[slot_of(name)]);
}

void cache_remove(const struct cache *cache, struct text uri)
{
    char name[CACHE_NAME_SIZE];

    name_entry(name, uri, 0, TEXT(""));
    atomic_fetch_add(&cache->shared->removals[slot_of(name)], 1);
    remove_entry(cache, name);
}

/* ---- who fetches ---- */

/* All locks are bytes of one file. Each is held by an open file description of its own, so that it
 * works between threads, too, and needs no cleaning up. */
int cache_lock(const struct cache *cache, const char *name)
{
    struct flock lock = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(number_of(name) >> 2),
        .l_len = 1,
    };
    int file = open_file(cache, LOCKS, O_RDWR | O_CREAT), error;

    if (file < 0)
        return CACHE_NO_LOCK;
    if (fcntl(file, F_OFD_SETLK, &lock) == 0)
        return file;
    error = errno;
    close(file);
    return error == EAGAIN || error == EACCES ? CACHE_LOCKED : CACHE_NO_LOCK;
}

void cache_unlock(const struct cache *cache, const char *name, int lock)
{
    if (lock < 0)
        return;
    close(lock);
    atomic_fetch_add(&cache->shared->moves[slot_of(name)], 1);
}

uint64_t cache_moves(const struct cache *cache, const char *name)
{
    return atomic_load(&cache->shared->moves[slot_of(name)]);
}

void cache_advance(const struct cache *cache, const char *name, int64_t now)
{
    atomic_store_explicit(&cache->shared->advanced[slot_of(name)], now, memory_order_relaxed);
}

int64_t cache_advanced(const struct cache *cache, const char *name, int64_t now)
{
    int64_t then =
        atomic_load_explicit(&cache->shared->advanced[slot_of(name)], memory_order_relaxed);

    /* The account may be older than this start of the machine, and others see the clock later. */
    return then <= now + CLOCK_DIFFERENCE ? then : 0;
}

void cache_time_out(const struct cache *cache, const char *name, int64_t now)
{
    size_t slot = slot_of(name);

    atomic_store(&cache->shared->late_name[slot], number_of(name));
    atomic_store(&cache->shared->late[slot], now);
}

bool cache_timed_out(const struct cache *cache, const char *name, int64_t since, int64_t now)
{
    size_t slot = slot_of(name);
    int64_t then = atomic_load(&cache->shared->late[slot]);

    return then >= since && then <= now + CLOCK_DIFFERENCE &&
           atomic_load(&cache->shared->late_name[slot]) == number_of(name);
}

/* A slot holds a part of the name and the second in which it is forgotten. */
#define SECONDS_MASK UINT64_C(0xffffffff)

void cache_pass(const struct cache *cache, const char *name, int64_t now)
{
    uint64_t number = number_of(name);

    atomic_store_explicit(&cache->shared->passes[slot_of(name)],
                          (number & ~SECONDS_MASK) |
                              ((uint64_t)(now + CACHE_PASS_SECONDS) & SECONDS_MASK),
                          memory_order_relaxed);
}

bool cache_passes(const struct cache *cache, const char *name, int64_t now)
{
    uint64_t number = number_of(name);
    uint64_t slot =
        atomic_load_explicit(&cache->shared->passes[slot_of(name)], memory_order_relaxed);

    return (slot & ~SECONDS_MASK) == (number & ~SECONDS_MASK) &&
           (slot & SECONDS_MASK) > (uint64_t)now &&
           (slot & SECONDS_MASK) <= (uint64_t)now + CACHE_PASS_SECONDS;
}
