/* Fuzzes the files of the cache: an entry whose file is damaged is not used, unless it is still
 * what was stored. */
#include "common/proxy/cache_directory.h"
#include "tests/fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define URI    TEXT("http://a.example:80/b")
#define BODY   TEXT("The body of the stored response, which is neither long nor short.\n")
#define FIELDS TEXT("Cache-Control: max-age=60\r\nVary: Accept\r\nETag: \"a\"\r\n")

static char path[] = "/tmp/fuzz_cache.XXXXXX";
static struct cache cache;
static char name[CACHE_NAME_SIZE];
static char pristine[4096]; /* the entry's file as it was stored */
static size_t pristine_size;

static void remove_directory(void)
{
    char command[64];

    cache_close(&cache);
    snprintf(command, sizeof command, "rm -r %s", path);
    require(system(command) == 0, "the directory can be removed");
}

/* Opens a cache, and stores the entry. */
static void set_up(void)
{
    struct cache_record record = {.uri = URI,
                                  .reason = TEXT("Fine"),
                                  .fields = FIELDS,
                                  .status = 200,
                                  .minor = 1,
                                  .requested = 10,
                                  .received = 20};
    struct cache_writer writer;
    int file;
    ssize_t size;

    require(mkdtemp(path) != NULL && cache_open(&cache, path, 1 << 20), "there is a directory");
    atexit(remove_directory);
    record.removals = cache_uri_removals(&cache, URI);
    require(cache_writer_begin(&cache, &writer, &record, TEXT("")) &&
                cache_writer_add(&cache, &writer, BODY) && cache_writer_commit(&cache, &writer),
            "an entry is stored");
    memcpy(name, writer.name, sizeof name);
    cache_writer_end(&cache, &writer);
    file = cache_file_open(&cache, name, O_RDONLY);
    size = read(file, pristine, sizeof pristine);
    require(file >= 0 && size > 0 && (size_t)size < sizeof pristine, "its file can be read");
    close(file);
    pristine_size = (size_t)size;
}

/* Replaces the file of the entry by the bytes. */
static void replace_entry(const char *bytes, size_t size)
{
    int file = openat(cache.directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    require(file >= 0 && write(file, bytes, size) == (ssize_t)size, "the file can be written");
    close(file);
}

/* Requires that an entry that is used is what was stored. */
static void check_entry(bool must_be_there)
{
    char found[CACHE_NAME_SIZE];
    struct cache_entry entry;

    if (cache_find(&cache, URI, TEXT(""), &entry, found) != CACHE_FOUND) {
        require(!must_be_there, "an entry that is whole is found");
        return;
    }
    if (cache_entry_verify(&cache, &entry))
        require(text_equal(entry.record.uri, URI) && text_equal(entry.record.fields, FIELDS) &&
                    text_equal(entry.record.reason, TEXT("Fine")) && entry.record.status == 200 &&
                    entry.record.length == BODY.length && text_equal(entry.body, BODY),
                "an entry that is used is what was stored");
    else
        require(!must_be_there, "an entry that is whole is used");
    cache_entry_close(&entry);
}

/* Three bytes of the input change a byte of the file: where it is, and its bits. */
static size_t damage(char *bytes, const uint8_t *data, size_t size)
{
    size_t length = pristine_size;

    for (size_t i = 0; i + 3 <= size; i += 3) {
        size_t at = ((size_t)data[i] << 8 | data[i + 1]) % (pristine_size + 64);
        if (at < length)
            bytes[at] ^= (char)data[i + 2];
        else if (data[i + 2] < 128 && at >= pristine_size)
            length = (size_t)data[i + 2] * pristine_size / 128; /* shorter */
    }
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char bytes[sizeof pristine];
    size_t length;

    if (pristine_size == 0)
        set_up();
    memcpy(bytes, pristine, pristine_size);
    length = damage(bytes, data, size);
    replace_entry(bytes, length);
    check_entry(length == pristine_size && memcmp(bytes, pristine, length) == 0);
    if (size > 0) { /* also a file that consists of the input */
        replace_entry((const char *)data, size);
        check_entry(false);
    }
    return 0;
}

const char *const fuzz_seeds[] = {
    "abc", "\1\1\1", "\1\4\1\1\44\1", "fvtcach1", "e\1\177e\1\2", "\1\60\1\1\61\1\1\62\1",
};
const size_t fuzz_seed_count = COUNT_OF(fuzz_seeds);
const char fuzz_subject[] = "the file of an entry";
const long fuzz_rounds = 5000;
