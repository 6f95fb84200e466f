/* Sums up what a server has done and what it cost: a line for people, JSON for programs. */
#include "common/summary.h"

#include "common/access_log.h"
#include "common/base/proc_status.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The CPU time of fewer requests is mostly that of the start. */
#define TELLING_REQUESTS 1000

struct cost {
    double cpu_seconds;
    double microseconds; /* of CPU, a request */
    long peak_kib;       /* of the largest process */
};

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Returns the most memory that this process has used. getrusage() counts what the process had
 * before exec(), too. */
static long peak_of_self(const struct server *server, const struct rusage *self)
{
    long kib = proc_status_number(server->memory.status, "VmHWM:");

    return kib >= 0 ? kib : self->ru_maxrss;
}

static double children_seconds(const struct server *server)
{
    const struct model_children *children = server->model->children;

    return children != NULL && children->cpu_seconds != NULL ? children->cpu_seconds(server) : 0;
}

/* The kernel counts children once they are reaped. */
static struct cost measure(const struct server *server)
{
    uint64_t requests = scoreboard_total(server->board, server->parts.slot_count).requests;
    struct rusage self, children;
    struct cost cost = {0};

    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    cost.cpu_seconds = seconds_of(self.ru_utime) + seconds_of(self.ru_stime) +
                       seconds_of(children.ru_utime) + seconds_of(children.ru_stime) +
                       children_seconds(server);
    cost.microseconds = requests > 0 ? cost.cpu_seconds * 1e6 / (double)requests : 0;
    cost.peak_kib = peak_of_self(server, &self);
    if (children.ru_maxrss > cost.peak_kib)
        cost.peak_kib = children.ru_maxrss;
    return cost;
}

/* Writes ", " and what the service has counted; nothing if it counted nothing. */
static void describe_service(const struct server *server, struct buffer *text)
{
    const struct service_counters *counters = server->context.service->counters;
    const _Atomic uint64_t *counts = server->board->of_service;
    uint64_t sum = 0;

    for (int i = 0; counters != NULL && i < SCOREBOARD_SERVICE_COUNTERS; i++)
        sum += counts[i];
    if (sum == 0)
        return;
    buffer_string(text, ", ");
    buffer_string(text, counters->title);
    for (int i = 0; i < SCOREBOARD_SERVICE_COUNTERS && counters->names[i] != NULL; i++) {
        buffer_string(text, i == 0 ? ": " : ", ");
        buffer_number(text, counts[i]);
        buffer_character(text, ' ');
        for (const char *c = counters->names[i]; *c != '\0'; c++)
            buffer_character(text, *c == '_' ? ' ' : *c);
    }
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void summary_print(const struct server *server)
{
    const struct scoreboard *board = server->board;
    struct total total = scoreboard_total(board, server->parts.slot_count);
    struct cost cost = measure(server);
    char made[64] = "", dropped[64] = "", ratio[40] = "", service[240];
    struct buffer counted = {.data = service, .capacity = sizeof service - 1};

    if (server->model->served_by != BY_MAIN)
        snprintf(made, sizeof made, ", %llu %s made", (unsigned long long)board->made,
                 model_makes(server->model));
    if (server->options.udp)
        snprintf(dropped, sizeof dropped, ", %llu datagrams dropped",
                 (unsigned long long)total.dropped);
    describe_service(server, &counted);
    service[counted.length] = '\0';
    if (total.requests >= TELLING_REQUESTS)
        snprintf(ratio, sizeof ratio, ", %.1f us/request", cost.microseconds);
    warnx("%llu connection%s, at most %llu at once, %llu request%s, %llu error%s, %llu bytes sent, "
          "%.3f s CPU%s, %ld KiB peak memory%s%s%s",
          (unsigned long long)total.connections, plural(total.connections),
          (unsigned long long)board->peak, (unsigned long long)total.requests,
          plural(total.requests), (unsigned long long)total.errors, plural(total.errors),
          (unsigned long long)total.bytes, cost.cpu_seconds, ratio, cost.peak_kib, made, dropped,
          service);
}

/* Returns true for a file that may be rewritten. Standard output, a terminal or a pipe is only
 * added to. */
static bool is_our_file(int file)
{
    struct stat status, output;

    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
           !(fstat(STDOUT_FILENO, &output) == 0 && status.st_dev == output.st_dev &&
             status.st_ino == output.st_ino);
}

/* Adds the counts of each worker. */
static void add_workers(struct buffer *json, const struct scoreboard *board, int slots)
{
    const char *separator = ", \"workers\": [";

    for (int i = 0; i < slots; i++) {
        buffer_string(json, separator);
        buffer_string(json, "{\"connections\": ");
        buffer_number(json, board->slots[i].connections);
        buffer_string(json, ", \"requests\": ");
        buffer_number(json, board->slots[i].requests);
        if (board->slots[i].waits > 0) {
            buffer_string(json, ", \"waits\": ");
            buffer_number(json, board->slots[i].waits);
            buffer_string(json, ", \"events\": ");
            buffer_number(json, board->slots[i].events);
        }
        buffer_string(json, "}");
        separator = ", ";
    }
    buffer_string(json, "]");
}

static void add_service(struct buffer *json, const struct server *server)
{
    const struct service_counters *counters = server->context.service->counters;

    if (counters == NULL)
        return;
    buffer_string(json, ", \"");
    buffer_string(json, counters->title);
    for (int i = 0; i < SCOREBOARD_SERVICE_COUNTERS && counters->names[i] != NULL; i++) {
        buffer_string(json, i == 0 ? "\": {\"" : ", \"");
        buffer_string(json, counters->names[i]);
        buffer_string(json, "\": ");
        buffer_number(json, server->board->of_service[i]);
    }
    buffer_character(json, '}');
}

static void add_totals(struct buffer *json, const struct server *server)
{
    const struct scoreboard *board = server->board;
    struct total total = scoreboard_total(board, server->parts.slot_count);
    struct cost cost = measure(server);
    int64_t active = atomic_load(&board->active);
    char text[512];

    snprintf(text, sizeof text,
             "{\"server\": \"%s\", \"connections\": %llu, \"active\": %llu, \"peak\": %llu, "
             "\"requests\": %llu, \"errors\": %llu, \"bytes\": %llu, \"cpu_seconds\": %.6f, "
             "\"microseconds_per_request\": %.3f, \"peak_memory_kib\": %ld, \"made\": %llu, "
             "\"gave_way\": %llu, \"refused\": %llu",
             server->model->name, (unsigned long long)total.connections,
             (unsigned long long)(active > 0 ? active : 0), (unsigned long long)board->peak,
             (unsigned long long)total.requests, (unsigned long long)total.errors,
             (unsigned long long)total.bytes, cost.cpu_seconds, cost.microseconds, cost.peak_kib,
             (unsigned long long)board->made, (unsigned long long)board->gave_way,
             (unsigned long long)board->refused);
    buffer_string(json, text);
    add_service(json, server);
    if (server->options.udp) {
        buffer_string(json, ", \"dropped\": ");
        buffer_number(json, total.dropped);
    }
}

#define TOTALS_ROOM 900
#define WORKER_ROOM 150

static bool replace_content(int file, struct text text)
{
    if (is_our_file(file) && (lseek(file, 0, SEEK_SET) != 0 || ftruncate(file, 0) < 0))
        return false;
    return access_log_write(file, text);
}

bool summary_write(const struct server *server, int file)
{
    size_t room = TOTALS_ROOM + (size_t)server->parts.slot_count * WORKER_ROOM;
    struct buffer json = {.capacity = room};
    bool written;

    if (file < 0)
        return true;
    json.data = malloc(room);
    if (json.data != NULL) {
        add_totals(&json, server);
        if (server->options.workers > 0)
            add_workers(&json, server->board, server->parts.slot_count);
        buffer_string(&json, "}\n");
    }
    written = json.data != NULL && replace_content(file, (struct text){json.data, json.length});
    if (!written)
        warn("cannot write the file of --stats");
    free(json.data);
    return written;
}
