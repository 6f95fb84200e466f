/* Writes the trace of a server to the file of --trace, in the JSON of Chrome's traces. */
#include "common/trace_file.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM 65536
/* The longest line has the name of the server twice. */
#define LINE_ROOM 512

static const char *const names[] = {
    [TRACE_START] = "start",         [TRACE_END] = "end",         [TRACE_ACCEPT] = "accept",
    [TRACE_HAND_OVER] = "hand over", [TRACE_BEGIN] = "begin",     [TRACE_WAIT] = "wait",
    [TRACE_READ] = "read",           [TRACE_RESPOND] = "respond", [TRACE_WRITE] = "write",
    [TRACE_CLOSE] = "close",
};

/* The names of the values of records, where they have one. */
static const char *const values[] = {
    [TRACE_ACCEPT] = "port",
    [TRACE_WRITE] = "status",
    [TRACE_CLOSE] = "bytes",
};

struct output {
    struct buffer buffer;
    char line[LINE_ROOM];
    int file;
    bool failed;
    const struct trace *trace;
    bool *handed_over;    /* by the number of a connection; NULL: unknown */
    uint32_t connections; /* that have such a number */
};

size_t trace_file_memory(const struct server *server)
{
    const struct options *options = &server->options;

    return options->trace == NULL ? 0
                                  : trace_size((uint64_t)options->trace_events, (int)server->limit);
}

bool trace_file_open(struct server *server, char **arguments)
{
    const struct options *options = &server->options;

    server->tracing.file = -1;
    if (options->trace == NULL)
        return true;
    server->tracing.arguments = arguments;
    server->tracing.processors = sysconf(_SC_NPROCESSORS_ONLN);
    server->tracing.file = access_log_open_file(options->trace, O_TRUNC);
    if (server->tracing.file < 0)
        return false;
    trace_make(&server->tracing.trace, server->parts.scratches, server->parts.trace,
               (uint64_t)options->trace_events, (int)server->limit);
    server->context.trace = &server->tracing.trace;
    return true;
}

/* ---- output ---- */

static void flush(struct output *output)
{
    size_t sent = 0;

    while (!output->failed && sent < output->buffer.length) {
        ssize_t count =
            write(output->file, output->buffer.data + sent, output->buffer.length - sent);
        if (count < 0 && errno == EINTR)
            continue;
        output->failed = count <= 0;
        sent += count > 0 ? (size_t)count : 0;
    }
    output->buffer.length = 0;
}

/* Adds the line to the buffer. */
static void put_line(struct output *output)
{
    if (output->buffer.capacity - output->buffer.length < sizeof output->line)
        flush(output);
    buffer_string(&output->buffer, output->line);
}

#define PUT(output, ...)                                                                           \
    (snprintf((output)->line, sizeof(output)->line, __VA_ARGS__), put_line(output))

/* Bytes that are no ASCII text become a question mark: an argument may be in any encoding. */
static void put_string(struct output *output, const char *text)
{
    PUT(output, "\"");
    for (; *text != '\0'; text++) {
        unsigned char character = (unsigned char)*text;
        if (character == '"' || character == '\\')
            PUT(output, "\\%c", character);
        else
            PUT(output, "%c", character >= ' ' && character < 127 ? character : '?');
    }
    PUT(output, "\"");
}

/* ---- the events ---- */

/* Microseconds with three decimals. Whole numbers are printed sooner than a double, and a trace
 * holds a million of them. */
#define MICROSECONDS "%llu.%03u"
#define MICROSECONDS_OF(duration)                                                                  \
    (unsigned long long)((duration) / 1000), (unsigned)((duration) % 1000)

/* A process has the name of its first thread. */
static void put_name(struct output *output, pid_t process, pid_t thread, const char *name)
{
    const char *kinds[] = {"thread_name", "process_name"};

    for (int i = 0; i < (process == thread ? 2 : 1); i++)
        PUT(output,
            ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
            kinds[i], (int)process, (int)thread, name);
}

static void put_task(struct output *output, const struct trace_record *record)
{
    char name[40], more[40] = "";

    if (record->what == TRACE_START) {
        if (record->value > 0) {
            snprintf(name, sizeof name, "worker %d", (int)record->value);
            snprintf(more, sizeof more, ",\"worker\":%d", (int)record->value);
        } else {
            snprintf(name, sizeof name, "%s",
                     record->process == record->thread ? "child" : "thread");
        }
        put_name(output, record->process, record->thread, name);
    } else if (record->value == 1) {
        snprintf(more, sizeof more, ",\"died\":true");
    }
    PUT(output,
        ",\n{\"ph\":\"i\",\"s\":\"t\",\"name\":\"%s\",\"cat\":\"task\",\"pid\":%d,\"tid\":%d,"
        "\"ts\":" MICROSECONDS ",\"args\":{\"cpu\":%d%s}}",
        names[record->what], (int)record->process, (int)record->thread,
        MICROSECONDS_OF(record->time), record->processor, more);
}

/* An arrow to the thread that a connection is handed over to. */
static void put_flow(struct output *output, const struct trace_record *record, bool starts)
{
    PUT(output,
        ",\n{\"ph\":\"%s\",\"name\":\"connection\",\"cat\":\"connection\",\"id\":%u,\"pid\":%d,"
        "\"tid\":%d,\"ts\":" MICROSECONDS "%s}",
        starts ? "s" : "f", record->connection, (int)record->process, (int)record->thread,
        MICROSECONDS_OF(record->time), starts ? "" : ",\"bp\":\"e\"");
}

static void put_activity(struct output *output, const struct trace_record *record, uint64_t end)
{
    uint64_t last = end > record->time ? end - record->time : 0;
    uint64_t duration = record->duration > 0 ? record->duration : last;

    PUT(output,
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"connection\",\"pid\":%d,\"tid\":%d,"
        "\"ts\":" MICROSECONDS ",\"dur\":" MICROSECONDS ",\"args\":{\"cpu\":%d",
        names[record->what], (int)record->process, (int)record->thread,
        MICROSECONDS_OF(record->time), MICROSECONDS_OF(duration), record->processor);
    if (record->connection > 0)
        PUT(output, ",\"connection\":%u", record->connection);
    if (record->what < sizeof values / sizeof values[0] && values[record->what] != NULL &&
        record->connection > 0)
        PUT(output, ",\"%s\":%llu", values[record->what], (unsigned long long)record->value);
    PUT(output, "}}");
}

/* Puts an arrow where a connection leaves a thread, and where another one begins with it. */
static void follow(struct output *output, const struct trace_record *record)
{
    if (output->handed_over == NULL || record->connection > output->connections)
        return;
    if (record->what == TRACE_HAND_OVER) {
        output->handed_over[record->connection] = true;
        put_flow(output, record, true);
    } else if (record->what == TRACE_BEGIN && output->handed_over[record->connection]) {
        put_flow(output, record, false);
    }
}

/* Puts the records in the order of their times. Shell's method needs neither memory nor a system
 * call, which the sandbox may refuse. */
static void sort(struct trace_record *records, uint64_t count)
{
    uint64_t gap = count;

    while (gap > 1) {
        gap = gap < 4 ? 1 : gap * 5 / 11;
        for (uint64_t i = gap; i < count; i++) {
            struct trace_record record = records[i];
            uint64_t at = i;

            for (; at >= gap && records[at - gap].time > record.time; at -= gap)
                records[at] = records[at - gap];
            records[at] = record;
        }
    }
}

static void put_about(struct output *output, const struct server *server)
{
    const char *name = server->model->name;
    size_t length = strlen(name) - (strstr(name, "_server") != NULL ? strlen("_server") : 0);

    PUT(output, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"server\":\"%s\",\"model\":\"%.*s\"",
        name, (int)length, name);
    PUT(output, ",\"version\":\"%s\",\"command\":[", PROJECT_VERSION);
    for (char **argument = server->tracing.arguments; *argument != NULL; argument++) {
        PUT(output, "%s", argument == server->tracing.arguments ? "" : ",");
        put_string(output, *argument);
    }
    PUT(output, "],\"processors\":%ld,\"lost\":%llu,\"start_ns\":%llu},\n\"traceEvents\":[\n",
        server->tracing.processors, (unsigned long long)trace_lost(output->trace),
        (unsigned long long)output->trace->started.nanoseconds);
    PUT(output,
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
        (int)server->process, (int)server->process, name);
    PUT(output,
        ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}"
        "}",
        (int)server->process, (int)server->process, name);
}

/* The last activity of a process that died ended when it died. */
static void end_last(struct trace_record *records, uint64_t death)
{
    for (uint64_t i = death; i-- > 0;) {
        if (records[i].thread != records[death].thread)
            continue;
        if (records[i].duration == 0)
            records[i].duration = records[death].time - records[i].time;
        return;
    }
}

static void put_record(struct output *output, uint64_t index, uint64_t end)
{
    const struct trace_record record = trace_read(output->trace, index);

    if (record.what == TRACE_START || record.what == TRACE_END)
        put_task(output, &record);
    else if (record.what != TRACE_NOTHING && record.what <= TRACE_CLOSE)
        put_activity(output, &record, end);
    follow(output, &record);
}

static void put_all(struct output *output, const struct server *server)
{
    struct trace_record *records = output->trace->records;
    uint64_t count = trace_count(output->trace);
    uint64_t end;

    put_about(output, server);
    sort(records, count);
    end = count > 0 ? trace_read(output->trace, count - 1).time : 0;
    for (uint64_t i = 0; i < count; i++)
        if (records[i].what == TRACE_END && records[i].value == 1)
            end_last(records, i);
    for (uint64_t i = 0; i < count; i++)
        put_record(output, i, end);
    PUT(output, "\n]}\n");
    flush(output);
}

void trace_file_end(struct server *server)
{
    struct trace *trace = server->context.trace;

    if (trace == NULL)
        return;
    trace_finish(trace);
    if (trace_lost(trace) > 0)
        warnx("the trace is not whole: %llu events did not fit; see --trace-events",
              (unsigned long long)trace_lost(trace));
}

bool trace_file_write(struct server *server)
{
    struct trace *trace = server->context.trace;
    char room[ROOM];
    struct output output = {
        .buffer = {.data = room, .capacity = sizeof room},
        .file = server->tracing.file,
        .trace = trace,
    };

    if (trace == NULL)
        return true;
    output.connections = atomic_load(&trace->counts->connections);
    output.handed_over = calloc((size_t)output.connections + 1, sizeof(bool));
    if (output.file != STDOUT_FILENO && lseek(output.file, 0, SEEK_SET) == 0)
        output.failed = ftruncate(output.file, 0) < 0 && errno != EINVAL; /* it is a device */
    put_all(&output, server);
    free(output.handed_over);
    if (output.failed)
        warn("cannot write the file of --trace");
    return !output.failed;
}
