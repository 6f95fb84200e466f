/* Makes the HTML page that lists a directory. */
#include "common/files/listing.h"

#include "common/base/open_beneath.h"
#include "common/http/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Further entries are left out: the limit bounds the memory of a request. */
#define ENTRY_LIMIT 10000
/* The most bytes of all lists that are being sent: clients may read them slowly. */
#define HELD_LIMIT (64 * 1024 * 1024)

static atomic_size_t held; /* bytes of lists that are being sent */

struct entry {
    char *name;
    bool is_directory;
    uint64_t size;
    int64_t modified;
};

struct listing {
    struct entry *entries;
    size_t count, capacity;
    bool cut;
};

static void listing_free(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->entries[i].name);
    free(listing->entries);
}

static bool add_entry(struct listing *listing, const char *name, const struct stat *status)
{
    struct entry *entry;

    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity > 0 ? 2 * listing->capacity : 64;
        struct entry *larger = realloc(listing->entries, capacity * sizeof *larger);
        if (larger == NULL)
            return false;
        listing->entries = larger;
        listing->capacity = capacity;
    }
    entry = &listing->entries[listing->count];
    *entry = (struct entry){
        .name = strdup(name),
        .is_directory = S_ISDIR(status->st_mode),
        .size = (uint64_t)status->st_size,
        .modified = status->st_mtim.tv_sec,
    };
    if (entry->name == NULL)
        return false;
    listing->count++;
    return true;
}

/* Gets the status of the file that a symbolic link leads to; false if it leads out of the root. */
static bool follow(int root, const char *path, const char *name, struct stat *status)
{
    char whole[PATH_LIMIT + NAME_MAX];
    int file;
    bool found;

    if (snprintf(whole, sizeof whole, "%s%s", path, name) >= (int)sizeof whole)
        return false;
    file = open_beneath(root, whole, O_PATH);
    if (file < 0)
        return false;
    found = fstat(file, status) == 0;
    close(file);
    return found;
}

/* Returns true for a regular file or a directory that is not hidden. */
static bool is_served(int root, const char *path, int directory, const char *name,
                      struct stat *status)
{
    if (name[0] == '.' || fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISLNK(status->st_mode) && !follow(root, path, name, status))
        return false;
    return S_ISREG(status->st_mode) || S_ISDIR(status->st_mode);
}

/* Returns the next entry; NULL at the end, or with errno set if the directory cannot be read. */
static struct dirent *next_entry(DIR *stream)
{
    errno = 0;
    return readdir(stream);
}

static bool read_entries(int root, const char *path, DIR *stream, struct listing *listing)
{
    struct dirent *found;

    while ((found = next_entry(stream)) != NULL) {
        struct stat status;
        if (!is_served(root, path, dirfd(stream), found->d_name, &status)) {
            if (errno == EIO || errno == ENOMEM)
                return false;
            continue;
        }
        listing->cut = listing->count == ENTRY_LIMIT;
        if (listing->cut)
            return true;
        if (!add_entry(listing, found->d_name, &status))
            return false;
    }
    return errno == 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;

    if (left->is_directory != right->is_directory)
        return right->is_directory - left->is_directory;
    return strcmp(left->name, right->name);
}

static void write_entry(const struct entry *entry, struct buffer *page)
{
    const char *slash = entry->is_directory ? "/" : "";

    buffer_string(page, "<tr><td><a href=\"./");
    for (struct text rest = text_of(entry->name); rest.length > 0; rest.data++, rest.length--) {
        /* An ampersand is legal in a path, but not in an attribute. */
        if (rest.data[0] == '&' || rest.data[0] == '\'')
            buffer_html(page, (struct text){rest.data, 1});
        else
            buffer_path(page, (struct text){rest.data, 1});
    }
    buffer_string(page, slash);
    buffer_string(page, "\">");
    buffer_html(page, text_of(entry->name));
    buffer_string(page, slash);
    buffer_string(page, "</a><td>");
    if (!entry->is_directory)
        buffer_number(page, entry->size);
    buffer_string(page, "<td>");
    date_write(page, entry->modified);
    buffer_character(page, '\n');
}

static void write_page(const struct listing *listing, struct text path, struct buffer *page)
{
    buffer_string(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>/");
    buffer_html(page, path);
    buffer_string(page, "</title>\n<style>body{font-family:sans-serif;margin:2em}"
                        "td{padding:.2em 1.5em .2em 0}td:nth-child(2){text-align:right}"
                        "</style>\n<h1>/");
    buffer_html(page, path);
    buffer_string(page, "</h1>\n<table>\n");
    if (path.length > 0)
        buffer_string(page, "<tr><td><a href=\"../\">../</a>\n");
    for (size_t i = 0; i < listing->count; i++)
        write_entry(&listing->entries[i], page);
    buffer_string(page, "</table>\n");
    if (listing->cut)
        buffer_string(page, "<p>There are more entries than are listed here.</p>\n");
    buffer_string(page, "</html>\n");
}

/* The most bytes of a character of a name: five as "&amp;" in the address, six as "&quot;" in the
 * text. */
#define CHARACTER_BYTES 11

static bool make_page(struct listing *listing, struct text path, struct buffer *page)
{
    size_t names = 0;

    for (size_t i = 0; i < listing->count; i++)
        names += strlen(listing->entries[i].name) * CHARACTER_BYTES + 160;
    page->capacity = names + 2 * path.length * 6 + 1024;
    page->data = malloc(page->capacity);
    if (page->data == NULL)
        return false;
    if (listing->count > 0)
        qsort(listing->entries, listing->count, sizeof *listing->entries, compare_entries);
    write_page(listing, path, page);
    return !page->overflow;
}

static void release(void *page)
{
    atomic_fetch_sub(&held, malloc_usable_size(page));
    free(page);
}

/* Makes the page the body; false if others are held already. */
static bool hold(struct buffer *page, struct response *response)
{
    char *fitting = realloc(page->data, page->length);
    size_t size;

    if (fitting != NULL)
        page->data = fitting;
    size = malloc_usable_size(page->data);
    if (atomic_fetch_add(&held, size) + size > HELD_LIMIT) {
        atomic_fetch_sub(&held, size);
        return false;
    }
    response_end(response);
    response->body = response_page(page);
    response->body.release = release;
    return true;
}

void listing_answer(int root, int directory, const char *path, struct response *response)
{
    struct listing listing = {0};
    struct buffer page = {0};
    DIR *stream = fdopendir(directory);

    if (stream == NULL)
        close(directory);
    if (stream == NULL || !read_entries(root, path, stream, &listing) ||
        !make_page(&listing, text_of(path), &page) || !hold(&page, response)) {
        free(page.data);
        response_refuse(response, 503, "The server cannot list the directory now.");
    } else {
        response->status = 200;
        response->type = TEXT("text/html; charset=utf-8");
    }
    if (stream != NULL)
        closedir(stream);
    listing_free(&listing);
}
