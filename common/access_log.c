/* Writes the access log. */
#include "common/access_log.h"

#include "common/base/fd_message.h"
#include "common/base/question.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A pipe takes a line of this length at once; each part that a client chose is cut to PART_LIMIT.
 */
#define LINE_LIMIT 4096
#define PART_LIMIT 1200

/* ---- opening ---- */

/* O_NONBLOCK: a log never waits for its reader. A named pipe without a reader is opened for
 * reading, too: the open then succeeds, and the pipe holds the first lines for a reader that comes
 * later. */
static int open_waitless(const char *name, int flags)
{
    int common = O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags;
    int file = open(name, O_WRONLY | common, 0644);

    return file < 0 && errno == ENXIO ? open(name, O_RDWR | common, 0644) : file;
}

int access_log_open_file(const char *name, int flags)
{
    int file = strcmp(name, "-") == 0 ? STDOUT_FILENO : open_waitless(name, flags);

    if (file < 0)
        warn("cannot open '%s'", name);
    return file;
}

/* The helper process opens the log again, or passes the file that it opened last: all processes
 * write to the same one. */
enum question { QUESTION_REOPEN = 'o', QUESTION_CURRENT = 'c' };

struct opener {
    const char *name;
    pid_t server;
    struct helper_process_confinement confinement;
};

/* A process that does not take the answer gets none. */
static void answer(int client, int file)
{
    const char nothing = 0;

    fd_message_send_at_once(client, &nothing, sizeof nothing, &file, file < 0 ? 0 : 1);
}

/* Workers have the socket, too. So only the server may have the file opened again, and a message
 * that is no question is ignored. */
static void open_logs(int socket, const void *argument)
{
    const struct opener *opener = argument;
    int current = -1, file;
    char question;
    struct fd_message message;
    size_t size;

    helper_process_confine(&opener->confinement, HELPER_PROCESS_WORKER);
    while (fd_message_receive(socket, &question, sizeof question, &size, &message)) {
        if (size == sizeof question && message.count > 0) {
            bool again = question == QUESTION_REOPEN && message.sender == opener->server;
            file = again ? open_waitless(opener->name, O_APPEND) : current;
            answer(message.descriptors[0], file);
            if (file >= 0 && file != current && current >= 0)
                close(current);
            if (file >= 0)
                current = file;
        }
        fd_message_close_at_once(&message);
    }
}

static struct access_log_shared *make_shared(void)
{
    struct access_log_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return shared != MAP_FAILED ? shared : NULL;
}

/* Starts the process, which learns who asks. Returns the socket that it is asked at; or -1. */
static int start_opener(const struct opener *opener)
{
    const int on = 1;
    int asking, answering;
    bool good;

    if (!question_open(&asking, &answering))
        return -1;
    good = setsockopt(answering, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
           helper_process_start("log_opener", answering, open_logs, opener, HELPER_PROCESS_ONLY);
    close(answering);
    if (good)
        return asking;
    close(asking);
    return -1;
}

bool access_log_open(struct access_log *log, const char *name,
                     const struct helper_process_confinement *confinement)
{
    const struct opener opener = {name, getpid(), *confinement};

    *log = (struct access_log){.name = name, .opener = -1};
    log->file = access_log_open_file(name, O_APPEND);
    if (log->file < 0)
        return false;
    log->shared = make_shared();
    if (log->shared != NULL && log->file == STDOUT_FILENO)
        return true;
    if (log->shared != NULL && lock_open(&log->lock))
        log->opener = start_opener(&opener);
    if (log->opener >= 0)
        return true;
    warn("cannot make a process that opens the log again");
    return false;
}

/* The caller has the lock. */
static bool replace(struct access_log *log, enum question kind)
{
    const char question = (char)kind;
    int socket = question_send(log->opener, &question, sizeof question);
    struct fd_message message = {0};
    size_t size;
    char nothing;
    bool good = socket >= 0 &&
                fd_message_receive(socket, &nothing, sizeof nothing, &size, &message) &&
                message.count == 1 && dup3(message.descriptors[0], log->file, O_CLOEXEC) >= 0;

    fd_message_close(&message);
    if (socket >= 0)
        close(socket);
    return good;
}

void access_log_reopen(struct access_log *log)
{
    if (log->opener < 0)
        return;
    lock_take(&log->lock, gettid());
    if (replace(log, QUESTION_REOPEN))
        atomic_store(&log->version, atomic_fetch_add(&log->shared->version, 1) + 1);
    else
        warnx("the log '%s' cannot be opened again: the old one stays in use", log->name);
    lock_give(&log->lock, gettid());
}

void access_log_renew(struct access_log *log)
{
    unsigned version;

    if (atomic_load(&log->version) == atomic_load(&log->shared->version))
        return;
    lock_take(&log->lock, gettid());
    version = atomic_load(&log->shared->version);
    if (atomic_load(&log->version) != version) {
        replace(log, QUESTION_CURRENT);
        atomic_store(&log->version, version); /* last: another thread would write to the old log */
    }
    lock_give(&log->lock, gettid());
}

struct access_log access_log_copy(const struct access_log *log, unsigned version)
{
    return (struct access_log){.name = log->name,
                               .file = log->file,
                               .version = version,
                               .shared = log->shared,
                               .opener = log->opener};
}

void access_log_close(struct access_log *log)
{
    if (log->opener >= 0)
        close(log->opener);
    log->opener = -1;
}

/* ---- writing ---- */

bool access_log_write(int file, struct text text)
{
    struct pollfd wait = {.fd = file, .events = POLLOUT};

    return poll(&wait, 1, 0) == 1 && (wait.revents & POLLOUT) &&
           write(file, text.data, text.length) == (ssize_t)text.length;
}

static void add_peer(struct buffer *line, struct transport *client)
{
    union address peer = {0};
    char name[INET6_ADDRSTRLEN] = "-";

    if (client->kind->peer(client, &peer))
        address_write(&peer, name, sizeof name);
    buffer_string(line, name);
}

static void add_two_digits(struct buffer *line, unsigned number)
{
    buffer_character(line, (char)('0' + number / 10));
    buffer_character(line, (char)('0' + number % 10));
}

/* Adds " - - [10/Oct/2000:13:55:36 +0000] ". */
static void add_time(struct buffer *line, int64_t seconds)
{
    struct calendar date = date_calendar(seconds);

    buffer_string(line, " - - [");
    add_two_digits(line, date.day);
    buffer_character(line, '/');
    buffer_string(line, date_months[date.month - 1]);
    buffer_character(line, '/');
    buffer_number(line, (uint64_t)date.year);
    buffer_character(line, ':');
    add_two_digits(line, date.hour);
    buffer_character(line, ':');
    add_two_digits(line, date.minute);
    buffer_character(line, ':');
    add_two_digits(line, date.second);
    buffer_string(line, " +0000] ");
}

/* Adds text of a client in quotes, and escapes all that could forge or garble a line. */
static void add_quoted(struct buffer *line, struct text text)
{
    static const char hex[] = "0123456789abcdef";
    size_t end = line->length + PART_LIMIT;

    buffer_character(line, '"');
    if (text.length == 0)
        buffer_character(line, '-');
    for (size_t i = 0; i < text.length && line->length < end; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte == '"' || byte == '\\' || byte < ' ' || byte >= 0x7f) {
            char escape[4] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
            buffer_add(line, (struct text){escape, sizeof escape});
        } else {
            buffer_character(line, (char)byte);
        }
    }
    buffer_character(line, '"');
}

static struct text field_or_nothing(const struct request *request, enum field_name name)
{
    struct text value = {0};
    size_t from = 0;

    request_field(request, name, &from, &value);
    return value;
}

void access_log_response(struct access_log *log, struct transport *client,
                         const struct request *request, int status, uint64_t bytes,
                         struct moment now)
{
    char space[LINE_LIMIT];
    struct buffer line = {.data = space, .capacity = sizeof space};

    access_log_renew(log);
    add_peer(&line, client);
    add_time(&line, now.seconds);
    add_quoted(&line, request->line);
    buffer_character(&line, ' ');
    buffer_number(&line, (uint64_t)status);
    buffer_character(&line, ' ');
    buffer_number(&line, bytes);
    buffer_character(&line, ' ');
    add_quoted(&line, field_or_nothing(request, FIELD_REFERER));
    buffer_character(&line, ' ');
    add_quoted(&line, field_or_nothing(request, FIELD_USER_AGENT));
    buffer_character(&line, '\n');
    access_log_write(log->file,
                     (struct text){line.data, line.length}); /* a failed write loses the line */
}
