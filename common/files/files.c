/* The service that answers with the documents of a directory. */
#include "common/files/files.h"

#include "common/base/open_beneath.h"
#include "common/files/crash_injection.h"
#include "common/files/file_cache.h"
#include "common/files/listing.h"
#include "common/files/status_page.h"
#include "common/http/mime_type.h"
#include "common/http/path.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INDEX "index.html"

static bool open_root(struct files *files, const char *root)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC};

    files->root = (int)syscall(SYS_openat2, AT_FDCWD, root, &how, sizeof how);
    if (files->root >= 0)
        return true;
    if (errno == ENOSYS)
        warnx("this kernel has no openat2, which keeps clients below the root: "
              "Linux 5.6 or later is needed");
    else
        warn("cannot open the root '%s', which --root names", root);
    return false;
}

bool files_open(struct files *files, const struct files_settings *settings)
{
    files->list = settings->list;
    files->wants_cache = settings->cache;
    files->lasting = settings->lasting;
    files->status = settings->status;
    files->cache = NULL;
    return open_root(files, settings->root);
}

void files_start(struct files *files)
{
    if (files->wants_cache && files->lasting)
        files->cache = file_cache_make();
}

void files_stay(struct files *files)
{
    if (files->wants_cache && files->cache == NULL)
        files->cache = file_cache_make();
}

void files_watch(struct files *files)
{
    if (files->cache != NULL)
        file_cache_watch(files->cache);
}

void files_close(struct files *files)
{
    if (files->cache != NULL)
        file_cache_free(files->cache);
}

static void refuse_open(struct response *response, int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        response_refuse(response, 403, "The document may not be read.");
        break;
    case ENXIO: /* a socket, or a device without a driver */
        response_refuse(response, 403, "Only regular files are served.");
        break;
    case EAGAIN: /* somebody holds a lease */
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        response_refuse(response, 503, "The document cannot be opened now.");
        break;
    default:
        response_refuse(response, 404, "There is no such document.");
    }
}

/* Sets the validators of a file: inode, size and time of modification tell its versions apart. */
static void describe(struct response *response, const struct stat *file)
{
    response->has_validators = true;
    response->modified = file->st_mtim.tv_sec;
    buffer_character(&response->etag, '"');
    buffer_hex(&response->etag, file->st_ino);
    buffer_character(&response->etag, '-');
    buffer_hex(&response->etag, (uint64_t)file->st_size);
    buffer_character(&response->etag, '-');
    buffer_hex(&response->etag, (uint64_t)file->st_mtim.tv_sec);
    buffer_character(&response->etag, '.');
    buffer_hex(&response->etag, (uint64_t)file->st_mtim.tv_nsec);
    buffer_character(&response->etag, '"');
}

static void release_document(void *document)
{
    file_cache_release(document);
}

static void answer_cached(struct response *response, struct text path, struct cached_file *document)
{
    response->status = 200;
    response->type = mime_type_of(path);
    response->body = (struct body){.kind = BODY_MEMORY,
                                   .length = (uint64_t)document->status.st_size,
                                   .memory = document->data,
                                   .release = release_document,
                                   .owner = document,
                                   .file = -1};
    describe(response, &document->status);
}

static void answer_file(const struct files *files, struct response *response, struct text path,
                        int file, const struct stat *status, struct moment now)
{
    struct cached_file *document =
        files->cache != NULL
            ? file_cache_put(files->cache, files->root, path, file, status, now.seconds)
            : NULL;

    if (document != NULL) {
        close(file);
        answer_cached(response, path, document);
        return;
    }
    response->status = 200;
    response->type = mime_type_of(path);
    response->body =
        (struct body){.kind = BODY_FILE, .length = (uint64_t)status->st_size, .file = file};
    describe(response, status);
}

/* Opens the regular file or directory at the path; on failure it fills in the response. */
static int open_document(const struct files *files, const char *path, size_t length,
                         struct stat *status, struct response *response)
{
    int file = open_beneath(files->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

    if (file < 0) {
        refuse_open(response, errno);
        return -1;
    }
    /* Not fstat(): its empty path lies in a page that a new process has not touched. */
    if (fstatat(file, path + length, status, AT_EMPTY_PATH) == 0 &&
        (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode)))
        return file;
    close(file);
    response_refuse(response, 403, "Only regular files are served.");
    return -1;
}

static void answer_directory(const struct files *files, const struct request *request, char *path,
                             size_t length, int directory, struct moment now,
                             struct response *response)
{
    struct stat status;
    int file;

    if (length > 0 && path[length - 1] != '/') {
        response_refuse(response, 301, "The document is a directory: its address ends in a slash.");
        response->moved_to = request;
        close(directory);
        return;
    }
    memcpy(path + length, INDEX, sizeof INDEX);
    file = open_document(files, path, length + sizeof INDEX - 1, &status, response);
    if (file >= 0 && S_ISREG(status.st_mode)) {
        answer_file(files, response, (struct text){path, length + sizeof INDEX - 1}, file, &status,
                    now);
    } else if (file >= 0) {
        close(file);
        response_refuse(response, 403, "The index of this directory is no regular file.");
    } else if (response->status != 404) {
        ; /* the index exists and may not be read */
    } else if (files->list) {
        path[length] = '\0';
        listing_answer(files->root, directory, path, response);
        directory = -1;
    } else {
        response_refuse(response, 403, "The directory may not be listed.");
    }
    if (directory >= 0)
        close(directory);
}

static bool resolve(const struct request *request, char *path, size_t size, size_t *length,
                    struct response *response)
{
    switch (path_resolve(request->path, path, size, length)) {
    case PATH_GOOD:
        return true;
    case PATH_MALFORMED:
        response_refuse(response, 400, "The path has a malformed percent-encoding.");
        return false;
    case PATH_CLIMBS:
        response_refuse(response, 400, "The path leads out of the documents.");
        return false;
    case PATH_LONG: /* no file has a path of this length */
    case PATH_HIDDEN:
        break;
    }
    response_refuse(response, 404, "There is no such document.");
    return false;
}

static void answer_path(const struct files *files, const struct request *request, char *path,
                        size_t size, struct moment now, struct response *response)
{
    struct cached_file *document = NULL;
    struct stat status;
    size_t length;
    int file;

    crash_injection_check(request->path);
    if (!resolve(request, path, size - sizeof INDEX, &length, response))
        return;
    if (files->cache != NULL)
        document =
            file_cache_take(files->cache, files->root, (struct text){path, length}, now.seconds);
    if (document != NULL) {
        answer_cached(response, (struct text){path, length}, document);
        return;
    }
    file = open_document(files, path, length, &status, response);
    if (file < 0)
        return;
    if (S_ISDIR(status.st_mode))
        answer_directory(files, request, path, length, file, now, response);
    else
        answer_file(files, response, (struct text){path, length}, file, &status, now);
}

/* Space for most paths fits into a page of the stack that is already in use. */
static void answer_read(const struct files *files, const struct request *request, struct moment now,
                        struct response *response)
{
    char space[256], *path = space;
    size_t size = sizeof space;

    if (request->path.length + sizeof INDEX >= size) {
        size = PATH_LIMIT + sizeof INDEX;
        path = malloc(size);
    }
    if (path == NULL)
        response_refuse(response, 503, "The server has no memory for this request.");
    else
        answer_path(files, request, path, size, now, response);
    if (path != space)
        free(path);
}

static void answer(const struct service_context *context, const struct request *request,
                   struct moment now, struct response *response)
{
    const struct text allowed = TEXT("GET, HEAD, OPTIONS");
    const struct files *files = context->state;

    switch (request->method) {
    case METHOD_GET:
    case METHOD_HEAD:
        if (files->status && text_equal(request->path, TEXT(STATUS_PAGE_PATH)))
            status_page_answer(context, response);
        else
            answer_read(files, request, now, response);
        break;
    case METHOD_OPTIONS:
        response->status = 204;
        response->allow = allowed;
        break;
    case METHOD_UNKNOWN:
        response_refuse(response, 501, "The method is not known here.");
        break;
    default:
        response_refuse(response, 405, "Documents can only be read here.");
        response->allow = allowed;
    }
}

const struct service service_files = {.name = "files", .answer = answer};
