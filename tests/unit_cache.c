/* Tests of the cache: an entry that was stored is found again, whole or not at all, whatever
 * happens to its files and whichever processes write at the same time. */
#include "common/proxy/cache_directory.h"
#include "common/proxy/cache_growing.h"
#include "common/proxy/cache_memory.h"
#include "common/proxy/cache_removal_count.h"
#include "common/proxy/fetch_wakeup.h"

#include "tests/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define URI TEXT("http://a.example:80/b")
#define NO_NAME                                                                                    \
    (char[CACHE_NAME_SIZE])                                                                        \
    {                                                                                              \
        0                                                                                          \
    }
#define MIB (1024 * 1024)

static char path[64];
static struct cache cache;

static int set_up(void **state)
{
    (void)state;
    strcpy(path, "/tmp/unit_cache.XXXXXX");
    assert_non_null(mkdtemp(path));
    assert_true(cache_open(&cache, path, MIB));
    cache_memory_open(&cache);
    return 0;
}

static int tear_down(void **state)
{
    char command[96];

    (void)state;
    cache_close(&cache);
    snprintf(command, sizeof command, "rm -r %s", path);
    return system(command);
}

static struct cache_record record_of(struct text uri)
{
    return (struct cache_record){.uri = uri,
                                 .reason = TEXT("Fine"),
                                 .fields = TEXT("A: b\r\n"),
                                 .status = 200,
                                 .minor = 1,
                                 .requested = 10,
                                 .received = 20};
}

static bool store(const struct cache_record *record, const char *request, struct text body)
{
    struct cache_record asked = *record;
    struct cache_writer writer;
    bool stored;

    asked.removals = cache_uri_removals(&cache, record->uri);
    stored = cache_writer_begin(&cache, &writer, &asked, text_of(request)) &&
             cache_writer_add(&cache, &writer, body) && cache_writer_commit(&cache, &writer);
    cache_writer_end(&cache, &writer);
    return stored;
}

static bool store_plain(struct text uri, struct text body)
{
    struct cache_record record = record_of(uri);

    return store(&record, "", body);
}

static bool holds(struct text uri, const char *request, struct text body)
{
    struct cache_entry entry;
    bool same;

    if (cache_find(&cache, uri, text_of(request), &entry, NO_NAME) != CACHE_FOUND)
        return false;
    same = cache_entry_verify(&cache, &entry) && entry.record.length == body.length &&
           (entry.body.data == NULL || text_equal(entry.body, body));
    cache_entry_close(&entry);
    return same;
}

static int count_files(char kind)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    int count = 0;

    while ((entry = readdir(directory)) != NULL)
        count += entry->d_name[0] == kind;
    closedir(directory);
    return count;
}

static void check_again(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_entry entry;

    (void)state;
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_NOTHING);
    assert_true(store(&record, "", TEXT("body")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    assert_true(cache_entry_verify(&cache, &entry));
    assert_true(text_equal(entry.record.uri, URI));
    assert_true(text_equal(entry.record.reason, TEXT("Fine")));
    assert_true(text_equal(entry.record.fields, TEXT("A: b\r\n")));
    assert_int_equal(entry.record.status, 200);
    assert_int_equal(entry.record.minor, 1);
    assert_int_equal(entry.record.requested, 10);
    assert_int_equal(entry.record.received, 20);
    assert_true(text_equal(entry.body, TEXT("body")));
    cache_entry_close(&entry);
    assert_int_equal(cache_find(&cache, TEXT("http://a.example:80/"), TEXT(""), &entry, NO_NAME),
                     CACHE_NOTHING);
    assert_true(store_plain(URI, TEXT("")));
    assert_true(holds(URI, "", TEXT("")));
    cache_remove(&cache, URI);
    assert_false(holds(URI, "", TEXT("")));
    assert_int_equal(count_files('t'), 0);
}

/* A restarted server finds the entries of the last one. */
static void check_restart(void **state)
{
    uint64_t size;

    (void)state;
    assert_true(store_plain(URI, TEXT("body")));
    size = cache_shared_size(&cache);
    assert_int_equal(size, 4096);
    cache_close(&cache);
    assert_true(cache_open(&cache, path, MIB));
    assert_int_equal(cache_shared_size(&cache), size);
    assert_true(holds(URI, "", TEXT("body")));
}

static void check_unfinished(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_writer writer;

    (void)state;
    assert_true(store_plain(URI, TEXT("old")));
    assert_true(cache_writer_begin(&cache, &writer, &record, TEXT("")));
    assert_true(cache_writer_add(&cache, &writer, TEXT("new")));
    assert_true(holds(URI, "", TEXT("old")));
    cache_writer_end(&cache, &writer);
    assert_true(holds(URI, "", TEXT("old")));
    assert_int_equal(count_files('t'), 0);
}

static const char *file_of(char kind)
{
    static char file[400];
    DIR *directory = opendir(path);
    const struct dirent *entry;

    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] == kind)
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    closedir(directory);
    return file;
}

/* The size of the one file whose name begins with that letter. */
static off_t size_of(char kind)
{
    struct stat status;

    assert_int_equal(count_files(kind), 1);
    assert_int_equal(stat(file_of(kind), &status), 0);
    return status.st_size;
}

/* A short body is held until it is committed; the entry is the same as one that was written in
 * pieces. */
static void store_short(bool replaces, off_t size)
{
    const struct text body = replaces ? TEXT("news") : TEXT("olds");
    struct cache_record record = record_of(URI);
    struct cache_writer writer;

    if (!replaces)
        cache_remove(&cache, URI);
    record.removals = cache_uri_removals(&cache, URI);
    assert_true(cache_writer_begin_short(&cache, &writer, &record, TEXT(""), body.length));
    assert_true(cache_writer_add(&cache, &writer, body));
    if (cache.links)
        assert_int_equal(count_files('t'), 0);
    else
        assert_int_equal(size_of('t'), 0);
    assert_true(cache_writer_commit(&cache, &writer));
    cache_writer_end(&cache, &writer);
    assert_int_equal(size_of('e'), size);
    assert_int_equal(count_files('t'), 0);
    assert_true(holds(URI, "", body));
    assert_int_equal(cache_shared_size(&cache), 4096);
}

/* Until then its file has no name, or a temporary one where the file system has no nameless files.
 */
static void check_short(void **state)
{
    const bool can_link = cache.links;
    off_t size;

    (void)state;
    assert_true(store_plain(URI, TEXT("body")));
    size = size_of('e');
    for (int links = 0; links <= can_link; links++) {
        cache.links = links;
        for (int replaces = 0; replaces < 2; replaces++)
            store_short(replaces, size);
    }
}

/* An entry whose file cannot get its name is not stored, and nothing of it is left. */
static void check_short_without_name(void **state)
{
    struct cache_record record = record_of(URI);
    char name[CACHE_NAME_SIZE], file[400];
    struct cache_writer writer;

    (void)state;
    cache_name_entry(name, URI, 0, TEXT(""));
    snprintf(file, sizeof file, "%s/%s", path, name);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_true(cache_writer_begin_short(&cache, &writer, &record, TEXT(""), 4));
    assert_true(cache_writer_add(&cache, &writer, TEXT("body")));
    assert_false(cache_writer_commit(&cache, &writer));
    cache_writer_end(&cache, &writer);
    assert_int_equal(count_files('t'), 0);
    assert_int_equal(cache_shared_size(&cache), 0);
}

/* The kernel removes a file without a name if its process is killed. */
static void check_short_crash(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_writer writer;
    int status;

    (void)state;
    if (fork() == 0) {
        if (!cache_writer_begin_short(&cache, &writer, &record, TEXT(""), 4) ||
            !cache_writer_add(&cache, &writer, TEXT("body")))
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    assert_true(wait(&status) > 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(count_files('t'), cache.links ? 0 : 1);
    assert_int_equal(count_files('e'), 0);
}

/* A body is not longer than was said, and a held one that is given up leaves nothing. */
static void check_short_unfinished(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_writer writer;

    (void)state;
    assert_true(cache_writer_begin_short(&cache, &writer, &record, TEXT(""), 3));
    assert_false(cache_writer_add(&cache, &writer, TEXT("longer than its sum is, too")));
    cache_writer_end(&cache, &writer);
    assert_int_equal(count_files('t') + count_files('e'), 0);
    assert_int_equal(cache_shared_size(&cache), 0);
}

/* A held body may be received into its room. One call writes it to the file; then the file grows.
 */
static void check_held(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_writer writer;
    struct buffer room;

    (void)state;
    assert_true(cache_writer_begin_short(&cache, &writer, &record, TEXT(""), 10));
    room = cache_writer_room(&writer);
    assert_true(room.capacity >= 10);
    memcpy(room.data, "hello", 5);
    assert_true(cache_writer_add(&cache, &writer, (struct text){room.data, 5}));
    assert_true(cache_writer_add(&cache, &writer, TEXT("wo")));
    assert_true(text_equal(cache_writer_held(&writer), TEXT("hellowo")));
    assert_int_equal(cache_shared_size(&cache), 10);
    assert_true(cache_writer_flush(&cache, &writer));
    assert_null(cache_writer_held(&writer).data);
    assert_int_equal(cache_writer_room(&writer).capacity, 0);
    assert_int_equal(count_files('t'), cache.links ? 0 : 1);
    assert_true(cache_writer_name(&cache, &writer));
    assert_int_equal(count_files('t'), 1);
    assert_true(cache_writer_add(&cache, &writer, TEXT("rld")));
    assert_true(cache_writer_commit(&cache, &writer));
    cache_writer_end(&cache, &writer);
    assert_true(holds(URI, "", TEXT("helloworld")));
    assert_int_equal(count_files('t'), 0);
    assert_int_equal(cache_shared_size(&cache), 4096);
}

/* A body for which there is no room in memory is not held: its writer does not begin. */
static void check_held_room(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_writer writer;

    (void)state;
    assert_false(cache_writer_begin_short(&cache, &writer, &record, TEXT(""), MIB / 2));
    assert_int_equal(count_files('t'), 0);
    assert_int_equal(cache_shared_size(&cache), 0);
}

static void check_vary(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_entry entry;

    (void)state;
    record.list = TEXT("accept");
    assert_true(store(&record, "Accept: a\r\n", TEXT("for a")));
    assert_true(store(&record, "Accept: b\r\n", TEXT("for b")));
    assert_true(store(&record, "", TEXT("for none")));
    assert_true(holds(URI, "Accept: a\r\nX: y\r\n", TEXT("for a")));
    assert_true(holds(URI, "accept:  b\r\n", TEXT("for b")));
    assert_true(holds(URI, "X: y\r\n", TEXT("for none")));
    assert_int_equal(cache_find(&cache, URI, TEXT("Accept: c\r\n"), &entry, NO_NAME), CACHE_OTHER);
    record.list = TEXT("accept,x"); /* another list hides the old responses, */
    assert_true(store(&record, "Accept: a\r\nX: y\r\n", TEXT("for a and y")));
    assert_true(holds(URI, "Accept: a\r\nX: y\r\n", TEXT("for a and y")));
    assert_false(holds(URI, "Accept: b\r\n", TEXT("for b")));
    cache_remove(&cache, URI);
    record.list = TEXT("accept"); /* and the old list does not bring them back */
    assert_true(store(&record, "Accept: c\r\n", TEXT("for c")));
    assert_false(holds(URI, "Accept: a\r\n", TEXT("for a")));
}

static void check_update(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_entry entry;

    (void)state;
    assert_true(store(&record, "", TEXT("body")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    record.fields = TEXT("A: c\r\nB: d\r\n");
    record.received = 30;
    assert_true(cache_writer_update(&cache, &entry, &record, TEXT("")));
    assert_true(
        text_equal(entry.record.fields, TEXT("A: b\r\n"))); /* an open entry does not change */
    cache_entry_close(&entry);
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    assert_true(text_equal(entry.record.fields, TEXT("A: c\r\nB: d\r\n")));
    assert_int_equal(entry.record.received, 30);
    assert_true(text_equal(entry.body, TEXT("body")));
    cache_entry_close(&entry);
}

/* A response to a request from before a removal is not stored after it: neither as an entry, nor as
 * one of several, nor as a newer record of the removed entry. */
static void check_removal(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_writer writer;
    struct cache_entry entry;

    (void)state;
    for (int varies = 0; varies < 2; varies++) {
        record.list = varies ? TEXT("accept") : TEXT("");
        record.removals = cache_uri_removals(&cache, URI);
        assert_true(cache_writer_begin(&cache, &writer, &record, TEXT("")));
        assert_true(cache_writer_add(&cache, &writer, TEXT("before")));
        cache_remove(&cache, URI);
        assert_false(cache_writer_commit(&cache, &writer));
        cache_writer_end(&cache, &writer);
        assert_false(holds(URI, "", TEXT("before")));
        assert_int_equal(count_files('t'), 0);
        assert_true(store(&record, "", TEXT("after")));
        assert_true(holds(URI, "", TEXT("after")));
    }
    record.removals = cache_uri_removals(&cache, URI);
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    cache_remove(&cache, URI);
    assert_false(cache_writer_update(&cache, &entry, &record, TEXT("")));
    cache_entry_close(&entry);
    assert_false(holds(URI, "", TEXT("after")));
    record.removals = cache_uri_removals(&cache, URI);
    cache_remove(&cache, TEXT("http://another.example:80/"));
    assert_int_equal(cache_uri_removals(&cache, URI), record.removals);
}

/* Removals of other URIs do not keep a response from being stored. */
static void check_other_removals(void **state)
{
    struct cache_record record = record_of(URI);
    char uri[40];

    (void)state;
    record.removals = cache_uri_removals(&cache, URI);
    for (int i = 0; i < 20000; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        cache_remove(&cache, text_of(uri));
        assert_false(cache_uri_removed_since(&cache, URI, record.removals));
    }
    cache_remove(&cache, URI);
    for (int i = 0; i < 400000; i++) { /* far more than are remembered */
        if (i % 50000 == 0)
            assert_true(cache_uri_removed_since(&cache, URI, record.removals));
        cache_removal_note(&cache, (uint64_t)i * 7919);
    }
    assert_true(cache_uri_removed_since(&cache, URI, record.removals));
}

static char large_body[400 * 1024];

static void update_large(const char *fields)
{
    struct cache_record record = record_of(URI);
    struct cache_entry entry;

    record.fields = text_of(fields);
    record.removals = cache_uri_removals(&cache, URI);
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    assert_true(cache_writer_update(&cache, &entry, &record, TEXT("")));
    cache_entry_close(&entry);
}

static bool has_fields(const char *fields)
{
    struct cache_entry entry;
    bool same;

    if (cache_find(&cache, URI, TEXT(""), &entry, NO_NAME) != CACHE_FOUND)
        return false;
    same = text_equal(entry.record.fields, text_of(fields)) && cache_entry_verify(&cache, &entry) &&
           entry.record.length == sizeof large_body && entry.record.status == 200;
    cache_entry_close(&entry);
    return same;
}

/* An update does not touch the file with a large body: it makes a small one beside it. */
static void check_large_update(void **state)
{
    struct text body = {large_body, sizeof large_body};
    struct stat before, after;
    uint64_t size;

    (void)state;
    assert_true(store_plain(URI, body));
    size = cache_shared_size(&cache);
    assert_int_equal(stat(file_of('e'), &before), 0);
    update_large("A: c\r\n");
    assert_true(has_fields("A: c\r\n"));
    update_large("A: d\r\n");
    assert_true(has_fields("A: d\r\n"));
    assert_int_equal(stat(file_of('e'), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(count_files('r'), 1);
    assert_int_equal(cache_shared_size(&cache), size + 4096);
    cache_close(&cache);
    assert_true(cache_open(&cache, path, MIB));
    assert_int_equal(cache_shared_size(&cache), size + 4096);
    assert_true(has_fields("A: d\r\n"));
    cache_remove(&cache, URI);
    assert_int_equal(cache_shared_size(&cache), 0);
    assert_int_equal(count_files('r'), 0);
}

/* To look for a newer record in vain takes time: a large entry is marked until it has one. A mark
 * that is lost, by chmod or by a copy, changes nothing. */
static void check_marked_update(void **state)
{
    (void)state;
    for (mode_t mode = 0600; mode <= 0700; mode += 0100) {
        assert_true(store_plain(URI, (struct text){large_body, sizeof large_body}));
        update_large("A: c\r\n");
        assert_int_equal(chmod(file_of('e'), mode), 0);
        assert_true(has_fields("A: c\r\n"));
        assert_int_equal(chmod(file_of('e'), mode | S_ISVTX), 0);
        assert_true(has_fields("A: b\r\n"));
        update_large("A: c\r\n");
        assert_true(has_fields("A: c\r\n"));
    }
}

/* A record belongs to the entry that it was made for, and to no other entry of that name. */
static void check_stray_record(void **state)
{
    struct text body = {large_body, sizeof large_body};
    char file[400], aside[100];

    (void)state;
    assert_true(store_plain(URI, body));
    update_large("A: c\r\n");
    snprintf(file, sizeof file, "%s", file_of('r'));
    snprintf(aside, sizeof aside, "%s/aside", path);
    assert_int_equal(link(file, aside), 0);
    large_body[0] = 'x';
    assert_true(store_plain(URI, body));
    assert_int_equal(count_files('r'), 0);
    assert_int_equal(rename(aside, file), 0);
    assert_int_equal(chmod(file_of('e'), 0600), 0); /* as if a record had been made for it */
    assert_true(has_fields("A: b\r\n"));
    update_large("A: c\r\n");
    assert_true(has_fields("A: c\r\n"));
    assert_int_equal(truncate(file, 100), 0); /* a damaged record belongs to none */
    assert_true(has_fields("A: b\r\n"));
    assert_int_equal(count_files('r'), 0);
    update_large("A: c\r\n");
    assert_int_equal(unlink(file_of('e')), 0);
    cache_close(&cache);
    assert_true(cache_open(&cache, path, MIB));
    assert_int_equal(count_files('r'), 0);
    assert_int_equal(cache_shared_size(&cache), 0);
}

/* A file with a wrong byte, or without its end, is no entry. */
static void check_damage(void **state)
{
    char name[CACHE_NAME_SIZE], file[160];
    struct cache_entry entry;
    struct stat status;

    (void)state;
    assert_true(store_plain(URI, TEXT("body")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, name), CACHE_FOUND);
    assert_int_equal(fstat(entry.file, &status), 0);
    cache_entry_close(&entry);
    snprintf(file, sizeof file, "%s/%s", path, name);
    for (off_t i = 0; i < status.st_size; i++) {
        char byte;
        int damaged;
        assert_true(store_plain(URI, TEXT("body")));
        damaged = open(file, O_RDWR);
        assert_int_equal(pread(damaged, &byte, 1, i), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(damaged, &byte, 1, i), 1);
        close(damaged);
        assert_false(holds(URI, "", TEXT("body")));
        assert_int_not_equal(access(file, F_OK), 0);
    }
    for (off_t i = 0; i < status.st_size; i++) {
        assert_true(store_plain(URI, TEXT("body")));
        assert_int_equal(truncate(file, i), 0);
        assert_false(holds(URI, "", TEXT("body")));
    }
    assert_true(store_plain(URI, TEXT("body")));
    assert_true(holds(URI, "", TEXT("body")));
}

/* Sets the time of the last write to the only entry, which makes it older than a tick of the clock.
 */
static void set_written(time_t written)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = written}};

    assert_int_equal(utimensat(AT_FDCWD, file_of('e'), times, 0), 0);
}

/* Returns true if the entry is taken from memory, and not from its file. */
static bool is_recalled(struct text body)
{
    struct cache_entry entry;
    bool recalled;

    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    assert_true(cache_entry_verify_first(&cache, &entry));
    assert_true(text_equal(entry.record.uri, URI));
    assert_true(text_equal(entry.record.fields, TEXT("A: b\r\n")));
    assert_true(text_equal(entry.body, body));
    recalled = entry.file < 0;
    cache_entry_close(&entry);
    return recalled;
}

/* A process reads a small entry once; again if its file is another one, or was written to. */
static void check_recent(void **state)
{
    struct cache_record record = record_of(URI);
    struct cache_entry entry;
    struct stat status;
    int file;

    (void)state;
    assert_true(store_plain(URI, TEXT("body")));
    assert_false(is_recalled(TEXT("body"))); /* it was written just now: the time tells nothing */
    set_written(1000);
    assert_false(is_recalled(TEXT("body")));
    assert_true(is_recalled(TEXT("body")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    record.removals = cache_uri_removals(&cache, URI);
    assert_true(cache_writer_update(&cache, &entry, &record, TEXT(""))); /* without its file */
    assert_true(text_equal(entry.body, TEXT("body")));
    cache_entry_close(&entry);
    assert_true(store_plain(URI, TEXT("ydob"))); /* another one */
    assert_false(is_recalled(TEXT("ydob")));
    set_written(2000);
    assert_false(is_recalled(TEXT("ydob")));
    assert_true(is_recalled(TEXT("ydob")));
    assert_int_equal(stat(file_of('e'), &status), 0);
    file = open(file_of('e'), O_WRONLY);
    assert_int_equal(pwrite(file, "x", 1, status.st_size - 1), 1);
    close(file);
    assert_false(holds(URI, "", TEXT("ydob"))); /* damaged */
    assert_int_equal(count_files('e'), 0);
    assert_true(store_plain(URI, TEXT("body")));
    set_written(3000);
    assert_false(is_recalled(TEXT("body")));
    assert_true(is_recalled(TEXT("body")));
    assert_int_equal(unlink(file_of('e')), 0);
    assert_false(holds(URI, "", TEXT("body"))); /* removed by somebody */
}

/* A symbolic link in place of an entry is not followed. */
static void check_link(void **state)
{
    char name[CACHE_NAME_SIZE], file[160], other[170];
    struct cache_entry entry;

    (void)state;
    assert_true(store_plain(URI, TEXT("body")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, name), CACHE_FOUND);
    cache_entry_close(&entry);
    snprintf(file, sizeof file, "%s/%s", path, name);
    snprintf(other, sizeof other, "%s/other", path);
    assert_int_equal(rename(file, other), 0);
    assert_int_equal(symlink(other, file), 0);
    assert_false(holds(URI, "", TEXT("body")));
}

/* Other things than regular files of this user are no entries, and opening them does not block. */
static void check_planted(void **state)
{
    char file[400];

    (void)state;
    assert_true(store_plain(URI, TEXT("body")));
    snprintf(file, sizeof file, "%s", file_of('e'));
    if (geteuid() == 0) {
        assert_int_equal(chown(file, 1, 1), 0);
        assert_false(holds(URI, "", TEXT("body")));
        assert_true(store_plain(URI, TEXT("body")));
    }
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_false(holds(URI, "", TEXT("body")));
    assert_true(store_plain(URI, TEXT("body")));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_false(holds(URI, "", TEXT("body")));
    assert_false(store_plain(URI, TEXT("body")));
    assert_int_equal(count_files('t'), 0);
}

static void check_large(void **state)
{
    size_t size = 400 * 1024;
    char *body = malloc(size);

    (void)state;
    for (size_t i = 0; i < size; i++)
        body[i] = (char)(i * 7 ^ i >> 9);
    assert_true(store_plain(URI, (struct text){body, size}));
    assert_true(holds(URI, "", (struct text){body, size}));
    free(body);
}

/* Turns a bit of the entry's file, at that place of the body. */
static void turn_bit(const struct cache_entry *entry, uint64_t offset)
{
    char file[160], byte;
    int damaged;

    snprintf(file, sizeof file, "%s/%s", path, entry->name);
    damaged = open(file, O_RDWR);
    assert_int_equal(pread(damaged, &byte, 1, (off_t)(entry->start + offset)), 1);
    byte ^= 4;
    assert_int_equal(pwrite(damaged, &byte, 1, (off_t)(entry->start + offset)), 1);
    close(damaged);
}

/* The blocks of a large body are checked one by one; what stands before damage may be used, and
 * damage behind a block that was found sound is found. */
static void check_blocks(void **state)
{
    const uint64_t size = 10 * CHECKSUM_BLOCK_BYTES + 100;
    const uint64_t places[] = {0, 5 * CHECKSUM_BLOCK_BYTES, size - 1, size + 8 * 3,
                               size + 8 * 10 + 7};
    const uint64_t blocks[] = {0, 5, 10, 3, 10};
    char *bytes = calloc(1, (size_t)size);

    (void)state;
    for (size_t i = 0; i < 2 * sizeof places / sizeof places[0]; i++) {
        uint64_t from = blocks[i / 2] * CHECKSUM_BLOCK_BYTES;
        struct cache_entry entry;
        struct cache_body body;
        assert_true(store_plain(URI, (struct text){bytes, (size_t)size}));
        assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
        body = cache_entry_body(&cache, &entry);
        if (i % 2 == 1) { /* it has been found sound before */
            assert_true(cache_entry_verify(&cache, &entry));
            assert_int_equal(block_checksums_check(&body, from, 50), 50);
        }
        turn_bit(&entry, places[i / 2]);
        cache_entry_close(&entry);
        assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
        assert_int_equal(cache_entry_verify_first(&cache, &entry), from > 0);
        body = cache_entry_body(&cache, &entry);
        if (from > 0)
            assert_int_equal(block_checksums_check(&body, from - 10, 50), 10);
        assert_int_equal(block_checksums_check(&body, from, 50), 0);
        cache_entry_close(&entry);
        assert_int_equal(count_files('e'), 0);
    }
    free(bytes);
}

/* A server checks a block once. */
static void check_memory_of_blocks(void **state)
{
    static char bytes[100000];
    const struct timespec old[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
    struct cache_entry entry;
    struct cache_body body;

    (void)state;
    assert_true(store_plain(URI, (struct text){bytes, sizeof bytes}));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
        body = cache_entry_body(&cache, &entry);
        if (i == 0) {
            utimensat(AT_FDCWD, file_of('e'), old, 0);
            cache_entry_close(&entry);
            continue;
        }
        assert_true(body.identity != 0);
        assert_int_equal(block_checksums_check(&body, 0, 40000), 40000);
        body.file = -1; /* what it has checked, it does not read */
        assert_int_equal(block_checksums_check(&body, 0, 40000), 40000);
        body.identity ^= UINT64_C(1) << 40; /* another file */
        assert_int_equal(block_checksums_check(&body, 0, 40000), 0);
        cache_entry_close(&entry);
    }
}

/* A head as long as the parser takes is stored, and a longer one is not. */
static void check_long_head(void **state)
{
    static char fields[CACHE_HEAD_LIMIT + 2];
    struct cache_record record = record_of(URI);
    struct cache_entry entry;

    (void)state;
    memset(fields, 'f', sizeof fields - 1);
    record.fields = (struct text){fields, CACHE_HEAD_LIMIT};
    assert_true(store(&record, "", TEXT("body")));
    assert_true(holds(URI, "", TEXT("body")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    assert_true(text_equal(entry.record.fields, record.fields));
    cache_entry_close(&entry);
    record.fields.length++;
    assert_false(store(&record, "", TEXT("body")));
}

/* No entry takes more than half of the limit. */
static void check_too_large(void **state)
{
    size_t size = MIB / 2 + 1;
    char *body = calloc(1, size);

    (void)state;
    assert_false(store_plain(URI, (struct text){body, size}));
    assert_int_equal(count_files('t'), 0);
    free(body);
}

static void check_eviction(void **state)
{
    static char body[60 * 1024];
    struct cache_entry entry;
    char uri[40];

    (void)state;
    for (int i = 0; i < 16; i++) { /* each takes 64 KiB: together they reach the limit */
        snprintf(uri, sizeof uri, "http://a/%d", i);
        assert_true(store_plain(text_of(uri), (struct text){body, sizeof body}));
    }
    assert_int_equal(count_files('e'), 16);
    assert_int_equal(cache_find(&cache, TEXT("http://a/0"), TEXT(""), &entry, NO_NAME),
                     CACHE_FOUND);
    cache_entry_touch(&cache, &entry);
    cache_entry_close(&entry);
    assert_true(store_plain(TEXT("http://a/16"), (struct text){body, sizeof body}));
    assert_true(cache_shared_size(&cache) <= MIB);
    assert_true(holds(TEXT("http://a/0"), "", (struct text){body, sizeof body}));
    assert_false(holds(TEXT("http://a/1"), "", (struct text){body, sizeof body}));
    assert_true(holds(TEXT("http://a/16"), "", (struct text){body, sizeof body}));
}

/* Using a variant also uses the index that leads to it. */
static void check_index_eviction(void **state)
{
    static char body[60 * 1024];
    struct cache_record record = record_of(URI);
    struct cache_entry entry;
    char uri[40];

    (void)state;
    record.list = TEXT("accept");
    assert_true(store(&record, "Accept: a\r\n", TEXT("for a")));
    for (int i = 0; i < 40; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        assert_true(store_plain(text_of(uri), (struct text){body, sizeof body}));
        assert_int_equal(cache_find(&cache, URI, TEXT("Accept: a\r\n"), &entry, NO_NAME),
                         CACHE_FOUND);
        cache_entry_touch(&cache, &entry);
        cache_entry_close(&entry);
    }
    assert_false(holds(TEXT("http://a/0"), "", (struct text){body, sizeof body}));
}

/* An open entry stays readable after its removal. */
static void check_open_eviction(void **state)
{
    struct text body = {large_body, sizeof large_body};
    struct cache_entry entry;
    char uri[40];

    (void)state;
    assert_true(store_plain(URI, body));
    update_large("A: c\r\n");
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    for (int i = 0; i < 3; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        assert_true(store_plain(text_of(uri), body));
    }
    assert_int_equal(count_files('r'), 0); /* it is removed with its entry */
    assert_true(cache_shared_size(&cache) <= MIB);
    assert_true(cache_entry_verify(&cache, &entry));
    assert_true(text_equal(entry.record.fields, TEXT("A: c\r\n")));
    cache_entry_close(&entry);
    assert_false(holds(URI, "", body));
}

/* Writes and reads the same entry in turns. Returns false if it reads one that is not whole. */
static bool struggle(int number)
{
    static char bodies[4][20000];
    bool good = true;

    memset(bodies[number], 'a' + number, sizeof bodies[number]);
    for (int i = 0; good && i < 200; i++) {
        struct cache_entry entry;
        good = store_plain(URI, (struct text){bodies[number], sizeof bodies[number]}) &&
               cache_find(&cache, URI, TEXT(""), &entry, NO_NAME) == CACHE_FOUND;
        if (good) {
            good = cache_entry_verify(&cache, &entry) && entry.record.length == 20000;
            cache_entry_close(&entry);
        }
    }
    return good;
}

static void *struggle_in_thread(void *number)
{
    return struggle((int)(intptr_t)number) ? NULL : number;
}

static void check_writers(void **state)
{
    pthread_t threads[2];
    void *result;
    int status;

    (void)state;
    for (int i = 0; i < 2; i++)
        if (fork() == 0)
            _exit(struggle(i) ? 0 : 1);
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, struggle_in_thread, (void *)(i + 2));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files('t'), 0);
    assert_int_equal(count_files('e'), 1);
}

/* A process that is killed while it writes leaves no entry behind, and no lock. */
static void check_crash(void **state)
{
    struct cache_record record = record_of(URI);
    char name[CACHE_NAME_SIZE];
    struct cache_writer writer;
    struct cache_entry entry;
    struct cache again;
    int status, lock;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    if (fork() == 0) {
        if (fetch_lock_take(&cache, name) < 0 ||
            !cache_writer_begin(&cache, &writer, &record, TEXT("")) ||
            !cache_writer_add(&cache, &writer, TEXT("half")))
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    assert_true(wait(&status) > 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_NOTHING);
    lock = fetch_lock_take(&cache, name);
    assert_true(lock >= 0);
    fetch_lock_release(&cache, name, lock);
    assert_int_equal(count_files('t'), 1);
    assert_true(cache_writer_begin(&cache, &writer, &record, TEXT("")));
    assert_int_equal(count_files('t'), 2);
    assert_true(cache_open(&again, path, MIB)); /* opening removes the abandoned file */
    assert_int_equal(count_files('t'), 1);
    assert_true(cache_writer_add(&cache, &writer, TEXT("whole")));
    assert_true(cache_writer_commit(&cache, &writer));
    cache_writer_end(&cache, &writer);
    assert_true(holds(URI, "", TEXT("whole")));
    cache_close(&again);
}

/* Stores, updates and removes for ever, and writes a byte after each round. */
static void work(int teller)
{
    struct text body = {large_body, sizeof large_body};

    for (unsigned turn = 0;; turn++) {
        struct cache_record record = record_of(URI);
        struct cache_entry entry;
        large_body[0] = (char)turn;
        if (!store_plain(URI, body) || write(teller, "", 1) != 1)
            _exit(1);
        record.removals = cache_uri_removals(&cache, URI);
        if (cache_find(&cache, URI, TEXT(""), &entry, NO_NAME) == CACHE_FOUND)
            cache_writer_update(&cache, &entry, &record, TEXT(""));
        cache_entry_close(&entry);
        if (turn % 4 == 3)
            cache_remove(&cache, URI);
    }
}

/* Whenever a process is killed, all entries are whole, and opening removes the files it left. */
static void check_kills(void **state)
{
    struct cache_entry entry;
    int teller[2], status;
    char told[8];
    pid_t worker;

    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pipe(teller), 0);
        worker = fork();
        if (worker == 0)
            work(teller[1]);
        for (int turns = 0; turns < i % 4 + 1;)
            turns += (int)read(teller[0], told, 1);
        assert_int_equal(kill(worker, SIGKILL), 0);
        assert_int_equal(waitpid(worker, &status, 0), worker);
        assert_true(WIFSIGNALED(status));
        close(teller[0]);
        close(teller[1]);
        cache_close(&cache);
        assert_true(cache_open(&cache, path, MIB));
        assert_int_equal(count_files('t'), 0);
        if (cache_find(&cache, URI, TEXT(""), &entry, NO_NAME) == CACHE_FOUND)
            assert_true(cache_entry_verify(&cache, &entry));
        cache_entry_close(&entry);
        assert_true(cache_shared_size(&cache) <= sizeof large_body + 3 * 4096);
    }
}

static void check_lock(void **state)
{
    char name[CACHE_NAME_SIZE], other[CACHE_NAME_SIZE];
    struct cache_entry entry;
    int status, lock, second;
    uint64_t moves;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    cache_find(&cache, TEXT("http://b/"), TEXT(""), &entry, other);
    lock = fetch_lock_take(&cache, name);
    assert_true(lock >= 0);
    assert_int_equal(fetch_lock_take(&cache, name),
                     FETCH_LOCK_BUSY); /* also for the same process */
    second = fetch_lock_take(&cache, other);
    assert_true(second >= 0);
    if (fork() == 0)
        _exit(fetch_lock_take(&cache, name) >= 0);
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    moves = fetch_lock_releases(&cache, name);
    fetch_lock_release(&cache, name, lock);
    assert_int_not_equal(fetch_lock_releases(&cache, name), moves);
    lock = fetch_lock_take(&cache, name);
    assert_true(lock >= 0);
    fetch_lock_release(&cache, name, lock);
    fetch_lock_release(&cache, other, second);
}

/* Nobody waits for a lock if the directory is empty or gone. */
static void check_no_directory(void **state)
{
    char name[CACHE_NAME_SIZE], command[96];
    struct cache_entry entry;
    int lock;

    (void)state;
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, name), CACHE_NOTHING);
    snprintf(command, sizeof command, "rm %s/*", path);
    assert_int_equal(system(command), 0);
    lock = fetch_lock_take(&cache, name);
    assert_true(lock >= 0);
    assert_int_equal(fetch_lock_take(&cache, name), FETCH_LOCK_BUSY);
    fetch_lock_release(&cache, name, lock);
    assert_true(store_plain(URI, TEXT("body")));
    assert_true(holds(URI, "", TEXT("body")));
    snprintf(command, sizeof command, "rm -r %s", path);
    assert_int_equal(system(command), 0);
    assert_int_equal(fetch_lock_take(&cache, name), FETCH_LOCK_NONE);
    assert_false(store_plain(URI, TEXT("body")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, name), CACHE_NOTHING);
    assert_int_equal(mkdir(path, 0700), 0); /* tear_down() needs it */
}

static void check_progress(void **state)
{
    char name[CACHE_NAME_SIZE];
    struct cache_entry entry;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    assert_int_equal(fetch_lock_progress(&cache, name, 5000), 0);
    fetch_lock_note_progress(&cache, name, 4000);
    assert_int_equal(fetch_lock_progress(&cache, name, 5000), 4000);
    assert_int_equal(fetch_lock_progress(&cache, name, 3999),
                     4000); /* read by a process whose clock is behind */
    assert_int_equal(fetch_lock_progress(&cache, name, 2999),
                     0); /* from before a restart of the machine */
}

static void check_failure(void **state)
{
    char name[CACHE_NAME_SIZE], other[CACHE_NAME_SIZE];
    struct cache_entry entry;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    cache_find(&cache, TEXT("http://b/"), TEXT(""), &entry, other);
    assert_int_equal(fetch_lock_failure(&cache, name, 1, 5000), 0);
    fetch_lock_note_failure(&cache, name, 504, 4000);
    assert_int_equal(fetch_lock_failure(&cache, name, 3000, 5000), 504);
    assert_int_equal(fetch_lock_failure(&cache, name, 4000, 3500),
                     504); /* read by a process whose clock is behind */
    assert_int_equal(fetch_lock_failure(&cache, name, 4001, 5000),
                     0); /* it was before that request came */
    assert_int_equal(fetch_lock_failure(&cache, name, 1, 2000),
                     0); /* from before a restart of the machine */
    assert_int_equal(fetch_lock_failure(&cache, other, 3000, 5000), 0);
    fetch_lock_note_failure(&cache, name, 502, 5000);
    assert_int_equal(fetch_lock_failure(&cache, name, 3000, 5000), 502);
}

static void check_answer(void **state)
{
    char name[CACHE_NAME_SIZE], other[CACHE_NAME_SIZE];
    struct cache_entry entry;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    cache_find(&cache, TEXT("http://b/"), TEXT(""), &entry, other);
    assert_false(fetch_lock_is_answered(&cache, name, 1, 1, 5000));
    fetch_lock_note_answer(&cache, name, 3000, 4000);
    assert_true(fetch_lock_is_answered(&cache, name, 4000, 3000, 5000));
    assert_false(fetch_lock_is_answered(&cache, name, 4001, 3000, 5000)); /* it came before */
    assert_false(fetch_lock_is_answered(&cache, name, 4000, 3001, 5000)); /* it was asked before */
    assert_false(fetch_lock_is_answered(&cache, name, 4000, 3000, 2000)); /* restarted */
    assert_false(fetch_lock_is_answered(&cache, other, 4000, 3000, 5000));
}

static bool has_news(int file)
{
    struct pollfd wait = {.fd = file, .events = POLLIN};

    return poll(&wait, 1, 0) > 0;
}

/* News wake everybody who waits at that time, once, and nobody who begins to wait afterwards. */
static void check_news(void **state)
{
    char name[CACHE_NAME_SIZE];
    struct cache_entry entry;
    int first, second, third;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    fetch_wakeup_tell(&cache, name);
    first = fetch_wakeup_listen(&cache, name);
    second = fetch_wakeup_listen(&cache, name);
    assert_true(first >= 0 && second >= 0);
    assert_false(has_news(first));
    fetch_wakeup_tell(&cache, name);
    third = fetch_wakeup_listen(&cache, name);
    assert_true(has_news(first) && has_news(second));
    assert_false(has_news(third));
    close(first);
    close(second);
    fetch_wakeup_tell(&cache, name);
    assert_true(has_news(third));
    close(third);
}

/* A lock can be seen without being taken. */
static void check_taken(void **state)
{
    char name[CACHE_NAME_SIZE];
    struct cache_entry entry;
    int lock;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    assert_false(fetch_lock_is_taken(&cache, name));
    lock = fetch_lock_take(&cache, name);
    assert_true(fetch_lock_is_taken(&cache, name));
    fetch_lock_release(&cache, name, lock);
    assert_false(fetch_lock_is_taken(&cache, name));
}

/* Others read an entry as it grows, until it is whole, or its writer has given it up or died. */
static void check_growing(void **state)
{
    static const enum cache_growing_state ends[] = {CACHE_GROWING_WHOLE, CACHE_GROWING_LOST,
                                                    CACHE_GROWING_LOST};
    char name[CACHE_NAME_SIZE];
    struct cache_record record = {
        .uri = URI, .reason = TEXT("OK"), .fields = TEXT("A: b\r\n"), .status = 200, .minor = 1};
    struct cache_entry entry;
    struct cache_writer writer;
    uint64_t length;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    for (int end = 0; end < 3; end++) {
        record.removals = cache_uri_removals(&cache, URI);
        assert_true(cache_writer_begin(&cache, &writer, &record, TEXT("")));
        assert_true(cache_writer_add(&cache, &writer, TEXT("12345")));
        assert_false(cache_growing_open(&cache, name, URI, TEXT(""), &entry));
        cache_growing_show(&cache, &writer, name, CACHE_GROWING_UNKNOWN);
        assert_false(cache_growing_open(&cache, name, TEXT("http://b/"), TEXT(""), &entry));
        assert_true(cache_growing_open(&cache, name, URI, TEXT(""), &entry));
        assert_true(text_equal(entry.record.fields, record.fields));
        assert_int_equal(entry.record.status, 200);
        assert_int_equal(cache_growing_look(&entry, true, &length), CACHE_GROWING_GROWS);
        assert_int_equal(length, 5);
        assert_true(cache_writer_add(&cache, &writer, TEXT("67")));
        if (end < 2)
            cache_growing_end(&cache, &writer, end == 0);
        if (end == 0)
            assert_true(cache_writer_commit(&cache, &writer));
        cache_writer_end(&cache, &writer);
        assert_int_equal(cache_growing_look(&entry, true, &length), ends[end]);
        assert_int_equal(length, 7);
        cache_entry_close(&entry);
        cache_remove(&cache, URI);
    }
}

/* The beginning of the file may be read while it is written: a part of it is new, and a part old.
 * The body is not taken for whole before its length is there. */
static void check_growing_torn(void **state)
{
    static const char *const magics[] = {"fvtwhol1", "fvtcach2"};
    char name[CACHE_NAME_SIZE];
    struct cache_record record = {.uri = URI, .reason = TEXT("OK"), .status = 200, .minor = 1};
    struct cache_entry entry;
    struct cache_writer writer;
    uint64_t length;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    record.removals = cache_uri_removals(&cache, URI);
    assert_true(cache_writer_begin(&cache, &writer, &record, TEXT("")));
    assert_true(cache_writer_add(&cache, &writer, TEXT("12345")));
    cache_growing_show(&cache, &writer, name, CACHE_GROWING_UNKNOWN);
    assert_true(cache_growing_open(&cache, name, URI, TEXT(""), &entry));
    for (int i = 0; i < 2; i++) {
        assert_true(cache_file_write(writer.file, magics[i], 8, 0));
        assert_int_equal(cache_growing_look(&entry, false, &length), CACHE_GROWING_GROWS);
        assert_int_equal(length, 5);
    }
    assert_true(cache_growing_end(&cache, &writer, true));
    assert_int_equal(cache_growing_look(&entry, false, &length), CACHE_GROWING_WHOLE);
    assert_int_equal(length, 5);
    cache_entry_close(&entry);
    cache_writer_end(&cache, &writer);
}

/* A response whose URI was removed after the request is not for clients that come later. */
static void check_growing_removed(void **state)
{
    char name[CACHE_NAME_SIZE];
    struct cache_record record = {.uri = URI, .reason = TEXT("OK"), .status = 200, .minor = 1};
    struct cache_entry entry;
    struct cache_writer writer;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    record.removals = cache_uri_removals(&cache, URI);
    assert_true(cache_writer_begin(&cache, &writer, &record, TEXT("")));
    cache_growing_show(&cache, &writer, name, 9);
    assert_true(cache_growing_open(&cache, name, URI, TEXT(""), &entry));
    cache_entry_close(&entry);
    cache_remove(&cache, URI);
    assert_false(cache_growing_open(&cache, name, URI, TEXT(""), &entry));
    cache_writer_end(&cache, &writer);
}

static _Atomic int lock_uses, unnoticed;

/* Takes the lock again and again. The taker can tell that another one has had it since a look. */
static void *use_lock(void *name)
{
    int kept = 0;

    while (kept < 20000) {
        uint64_t releases = fetch_lock_releases(&cache, name);
        int uses = atomic_load(&lock_uses);
        int lock = fetch_lock_take(&cache, name);
        if (lock < 0)
            continue;
        if (fetch_lock_releases(&cache, name) == releases)
            unnoticed += atomic_load(&lock_uses) != uses;
        atomic_fetch_add(&lock_uses, 1);
        fetch_lock_release(&cache, name, lock);
        kept++;
    }
    return NULL;
}

static void check_lock_between(void **state)
{
    char name[CACHE_NAME_SIZE];
    pthread_t other;

    (void)state;
    cache_name_entry(name, URI, 0, TEXT(""));
    for (int round = 1; round <= 2; round++) {
        assert_int_equal(pthread_create(&other, NULL, use_lock, name), 0);
        use_lock(name);
        assert_int_equal(pthread_join(other, NULL), 0);
        assert_int_equal(atomic_load(&lock_uses), round * 40000);
        assert_int_equal(atomic_load(&unnoticed), 0);
        fetch_lock_open_files(&cache);
    }
    fetch_lock_close_files(&cache);
}

/* A file that is kept holds no lock, and the next lock uses it. */
static void check_kept_locks(void **state)
{
    enum { LOCKS = FETCH_LOCK_FILES + 10 };
    char name[LOCKS][CACHE_NAME_SIZE];
    struct cache other;
    int locks[LOCKS], kept = 0;

    (void)state;
    assert_true(cache_open(&other, path, MIB));
    fetch_lock_open_files(&cache);
    for (unsigned i = 0; i < LOCKS; i++) {
        cache_name_entry(name[i], URI, i + 1, TEXT(""));
        locks[i] = fetch_lock_take(&cache, name[i]);
        assert_true(locks[i] >= 0);
        assert_int_equal(fetch_lock_take(&cache, name[i]), FETCH_LOCK_BUSY);
        assert_int_equal(fetch_lock_take(&other, name[i]), FETCH_LOCK_BUSY);
    }
    for (int i = 0; i < LOCKS; i++) {
        fetch_lock_release(&cache, name[i], locks[i]);
        assert_false(fetch_lock_is_taken(&other, name[i]));
    }
    for (int i = 0; i < LOCKS; i++)
        kept += fcntl(locks[i], F_GETFD) >= 0;
    assert_int_equal(kept + 1, FETCH_LOCK_FILES); /* and that of the last busy lock */
    locks[0] = fetch_lock_take(&other, name[0]);
    assert_true(locks[0] >= 0);
    assert_int_equal(fetch_lock_take(&cache, name[0]), FETCH_LOCK_BUSY);
    assert_true(fetch_lock_is_taken(&cache, name[0]));
    fetch_lock_release(&other, name[0], locks[0]);
    assert_false(fetch_lock_is_taken(&cache, name[0]));
    cache_close(&other);
}

/* The size after all files are counted. */
static uint64_t counted_size(void)
{
    struct cache same;
    uint64_t size;

    assert_true(cache_open(&same, path, MIB));
    size = cache_shared_size(&same);
    cache_close(&same);
    return size;
}

static void damage_shared_file(const void *bytes, size_t count)
{
    char name[96];
    int file;

    snprintf(name, sizeof name, "%s/" CACHE_NAME_SHARED, path);
    file = open(name, O_WRONLY);
    assert_int_equal(pwrite(file, bytes, count, 0), count);
    close(file);
}

/* The cache works on, and finds its size again, whatever happens to the shared file. */
static void check_shared_file(void **state)
{
    static const int64_t sizes[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 40};
    char name[96];
    int file;

    (void)state;
    snprintf(name, sizeof name, "%s/" CACHE_NAME_SHARED, path);
    cache_close(&cache); /* open it again: cmocka has replaced its signal handler */
    assert_true(cache_open(&cache, path, MIB));
    assert_true(store_plain(URI, TEXT("first")));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(truncate(name, i * 1000), 0);
        assert_true(holds(URI, "", TEXT("first")));
        assert_int_equal(cache_uri_removals(&cache, URI), 0);
        assert_true(store_plain(TEXT("http://b/"), TEXT("second")));
        assert_int_equal(cache_shared_size(&cache), 2 * 4096);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        damage_shared_file(&sizes[i], sizeof sizes[i]);
        assert_true(store_plain(TEXT("http://b/"), TEXT("third")));
        assert_int_equal(cache_shared_size(&cache), 2 * 4096);
    }
    file = open(name, O_RDWR);
    unlink(name);
    assert_int_equal(ftruncate(file, 0), 0);
    close(file);
    assert_true(store_plain(TEXT("http://b/"), TEXT("fourth")));
    assert_true(holds(URI, "", TEXT("first")));
    assert_int_equal(cache_shared_size(&cache), 2 * 4096);
    assert_int_equal(counted_size(), 2 * 4096);
}

/* A server of an earlier version has left its shared file, which has another layout. */
static void check_earlier_version(void **state)
{
    char name[96];
    int file;

    (void)state;
    assert_true(store_plain(URI, TEXT("first")));
    cache_close(&cache);
    snprintf(name, sizeof name, "%s/" CACHE_NAME_SHARED_BEFORE, path);
    file = open(name, O_RDWR | O_CREAT, 0600);
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    close(file);
    assert_true(cache_open(&cache, path, MIB));
    assert_int_equal(access(name, F_OK), -1);
    assert_int_equal(cache_shared_size(&cache), 4096);
    assert_true(holds(URI, "", TEXT("first")));
}

/* The next writer removes the files of killed ones, and corrects the size. */
static void check_killed_writers(void **state)
{
    static char body[400 * 1024];
    struct cache_record record = record_of(TEXT("http://b/"));

    (void)state;
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct cache_writer writer;
            bool begun = cache_writer_begin(&cache, &writer, &record, TEXT("")) &&
                         cache_writer_add(&cache, &writer, (struct text){body, sizeof body});
            _exit(begun ? 0 : 1);
        }
        waitpid(child, NULL, 0);
    }
    assert_true(count_files('t') > 0);
    assert_true(store_plain(URI, TEXT("first")));
    assert_true(holds(URI, "", TEXT("first")));
    assert_true(cache_shared_size(&cache) <= MIB * 3 / 2);
    assert_true(store_plain(URI, (struct text){body, sizeof body}));
    assert_true(cache_shared_size(&cache) <= MIB * 3 / 2);
}

static void check_bypass(void **state)
{
    char name[CACHE_NAME_SIZE], other[CACHE_NAME_SIZE];
    struct cache_entry entry;

    (void)state;
    cache_find(&cache, URI, TEXT(""), &entry, name);
    cache_find(&cache, TEXT("http://b/"), TEXT(""), &entry, other);
    assert_false(fetch_lock_is_bypassed(&cache, name, 1000));
    fetch_lock_note_bypass(&cache, name, 1000);
    assert_true(fetch_lock_is_bypassed(&cache, name, 1000));
    assert_true(fetch_lock_is_bypassed(&cache, name, 1000 + FETCH_LOCK_BYPASS_SECONDS - 1));
    assert_false(fetch_lock_is_bypassed(&cache, name, 1000 + FETCH_LOCK_BYPASS_SECONDS));
    assert_false(fetch_lock_is_bypassed(&cache, other, 1000));
}

/* A limit on the size of files fails writes as a full disk does. */
static void check_full(void **state)
{
    static char body[100000];
    struct rlimit old, tight = {.rlim_cur = 50000, .rlim_max = RLIM_INFINITY};
    struct cache_record record = record_of(URI);
    struct cache_writer writer;
    struct cache_entry entry;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    assert_false(store_plain(URI, (struct text){body, sizeof body}));
    assert_true(cache_writer_begin_short(&cache, &writer, &record, TEXT(""), sizeof body));
    assert_true(cache_writer_add(&cache, &writer, (struct text){body, sizeof body}));
    assert_false(cache_writer_flush(&cache, &writer));
    assert_false(cache_writer_commit(&cache, &writer));
    assert_int_equal(cache_writer_held(&writer).length, sizeof body); /* it can still be sent */
    cache_writer_end(&cache, &writer);
    assert_true(store_plain(URI, TEXT("small")));
    assert_int_equal(cache_find(&cache, URI, TEXT(""), &entry, NO_NAME), CACHE_FOUND);
    tight.rlim_cur = 100; /* now there is no room for an update, either */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    assert_false(cache_writer_update(&cache, &entry, &record, TEXT("")));
    cache_entry_close(&entry);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(cache_shared_size(&cache), 4096);
    assert_true(holds(URI, "", TEXT("small")));
    assert_int_equal(count_files('t'), 0);
}

/* Stores more than the disk takes, in a file system of its own. Returns what failed. */
static int fill_disk(void)
{
    static char body[100000];
    char uri[40];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", path, "tmpfs", 0, "size=4m,mode=0700") < 0)
        return 77;
    if (!cache_open(&cache, path, 100 * (uint64_t)MIB))
        return 1;
    for (int i = 0; i < 100; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        if (!store_plain(text_of(uri), (struct text){body, sizeof body}))
            return 2;
        if (!holds(text_of(uri), "", (struct text){body, sizeof body}))
            return 3;
    }
    return count_files('t') == 0 && count_files('e') > 10 ? 0 : 4;
}

/* If the disk is full, the least recently used entries make room. */
static void check_full_disk(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(fill_disk());
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        UNIT_SKIP("this user may mount nothing");
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a directory of others, other users could read responses, or plant some. */
static void check_directory(void **state)
{
    struct cache other;

    (void)state;
    assert_int_equal(chmod(path, 0777), 0);
    assert_false(cache_open(&other, path, MIB));
    cache_close(&other);
    assert_int_equal(chmod(path, 0700), 0);
    assert_false(cache_open(&other, "/dev/null/cache", MIB));
    cache_close(&other);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        {"a stored response", check_again, set_up, tear_down, NULL},
        {"a restart", check_restart, set_up, tear_down, NULL},
        {"an unfinished entry", check_unfinished, set_up, tear_down, NULL},
        {"a short entry", check_short, set_up, tear_down, NULL},
        {"a short entry whose process is killed", check_short_crash, set_up, tear_down, NULL},
        {"a short entry whose name is taken", check_short_without_name, set_up, tear_down, NULL},
        {"a short entry that is given up", check_short_unfinished, set_up, tear_down, NULL},
        {"a held body", check_held, set_up, tear_down, NULL},
        {"room for a held body", check_held_room, set_up, tear_down, NULL},
        {"locks that were had in between", check_lock_between, set_up, tear_down, NULL},
        {"files of locks that are kept", check_kept_locks, set_up, tear_down, NULL},
        {"responses that vary", check_vary, set_up, tear_down, NULL},
        {"an update", check_update, set_up, tear_down, NULL},
        {"removals", check_removal, set_up, tear_down, NULL},
        {"removals of other URIs", check_other_removals, set_up, tear_down, NULL},
        {"an update of a large entry", check_large_update, set_up, tear_down, NULL},
        {"the mark of a large entry with a newer record", check_marked_update, set_up, tear_down,
         NULL},
        {"the record of another body", check_stray_record, set_up, tear_down, NULL},
        {"damage", check_damage, set_up, tear_down, NULL},
        {"entries that were used lately", check_recent, set_up, tear_down, NULL},
        {"a symbolic link", check_link, set_up, tear_down, NULL},
        {"planted files", check_planted, set_up, tear_down, NULL},
        {"a large body", check_large, set_up, tear_down, NULL},
        {"a long head", check_long_head, set_up, tear_down, NULL},
        {"damage of a block", check_blocks, set_up, tear_down, NULL},
        {"blocks that were checked", check_memory_of_blocks, set_up, tear_down, NULL},
        {"a body too large", check_too_large, set_up, tear_down, NULL},
        {"eviction of the least recently used", check_eviction, set_up, tear_down, NULL},
        {"eviction of an index", check_index_eviction, set_up, tear_down, NULL},
        {"eviction of an open entry", check_open_eviction, set_up, tear_down, NULL},
        {"concurrent writers", check_writers, set_up, tear_down, NULL},
        {"a crash", check_crash, set_up, tear_down, NULL},
        {"crashes at any time", check_kills, set_up, tear_down, NULL},
        {"locks", check_lock, set_up, tear_down, NULL},
        {"a removed directory", check_no_directory, set_up, tear_down, NULL},
        {"progress of a fetch", check_progress, set_up, tear_down, NULL},
        {"a fetch that fails", check_failure, set_up, tear_down, NULL},
        {"an answer that others share", check_answer, set_up, tear_down, NULL},
        {"news", check_news, set_up, tear_down, NULL},
        {"an entry that grows", check_growing, set_up, tear_down, NULL},
        {"an entry that grows, as its beginning changes", check_growing_torn, set_up, tear_down,
         NULL},
        {"an entry that grows and is removed", check_growing_removed, set_up, tear_down, NULL},
        {"a lock that is taken", check_taken, set_up, tear_down, NULL},
        {"a damaged shared file", check_shared_file, set_up, tear_down, NULL},
        {"the shared file of an earlier version", check_earlier_version, set_up, tear_down, NULL},
        {"killed writers", check_killed_writers, set_up, tear_down, NULL},
        {"bypasses", check_bypass, set_up, tear_down, NULL},
        {"room on a full disk", check_full_disk, set_up, tear_down, NULL},
        {"a full disk", check_full, set_up, tear_down, NULL},
        {"a directory of others", check_directory, set_up, tear_down, NULL},
    };

    return cmocka_run_group_tests_name("cache", cases, NULL, NULL);
}
