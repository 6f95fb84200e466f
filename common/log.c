/* Writes the access log. */
#include "common/log.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A pipe takes a line of this length at once; each part that a client chose is cut to PART_LIMIT.
 */
#define LINE_LIMIT 4096
#define PART_LIMIT 1200

bool log_write(int file, struct text text)
{
    struct pollfd wait = {.fd = file, .events = POLLOUT};

    return poll(&wait, 1, 0) == 1 && (wait.revents & POLLOUT) &&
           write(file, text.data, text.length) == (ssize_t)text.length;
}

static void add_peer(struct buffer *line, const struct transport *client)
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

void log_response(int log, const struct transport *client, const struct request *request,
                  int status, uint64_t bytes, struct moment now)
{
    char space[LINE_LIMIT];
    struct buffer line = {.data = space, .capacity = sizeof space};

    if (log < 0)
        return;
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
    log_write(log, (struct text){line.data, line.length}); /* a failed write loses the line */
}
