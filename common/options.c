#include "common/options.h"

#include "common/net/address.h"

#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    KIND_FLAG,
    KIND_TEXT,
    KIND_COUNT,
    KIND_SECONDS,
    KIND_ADDRESS,
    KIND_SERVICE,
    KIND_PROTOCOL,
    KIND_WORKERS,
    KIND_ACCEPT,
    KIND_ORIGIN,
    KIND_ALLOW,
    KIND_SIZE,
    KIND_HELP,
    KIND_VERSION,
};

struct row {
    const char *name;
    const char *argument;
    enum kind kind;
    size_t offset; /* of the member of struct options */
    const char *help;
    int least; /* of a count */
};

#define AT(member) offsetof(struct options, member)

static const struct row rows[] = {
    {"root", "DIR", KIND_TEXT, AT(root), "the documents (data)", 0},
    {"bind", "ADDRESS", KIND_ADDRESS, 0, "listen there; may be repeated (loopback, IPv4 and IPv6)",
     0},
    {"service", "WHAT", KIND_SERVICE, AT(service),
     "what is answered: files; sized: /N is a document of N bytes, 100 to 20000; or proxy: what "
     "others have (files)",
     0},
    {"max-age", "S", KIND_COUNT, AT(max_age),
     "how long caches may keep the odd ones of sized, in seconds; even ones are new each time (60)",
     0},
    {"tls", NULL, KIND_FLAG, AT(tls), "HTTPS: TLS 1.2 and 1.3. SIGHUP reads the certificate again",
     0},
    {"cert", "FILE", KIND_TEXT, AT(certificate),
     "its certificate and chain, in PEM form (certificate/cert.pem)", 0},
    {"key", "FILE", KIND_TEXT, AT(key), "its private key (certificate/key.pem)", 0},
    {"udp", NULL, KIND_FLAG, AT(udp),
     "also answer requests in UDP datagrams on the same port: one in each, and one for its reply",
     0},
    {"protocol", "HOW", KIND_PROTOCOL, AT(protocol),
     "simple: one HTTP/1.0 reply per connection; persistent: keep-alive, one reply per write; "
     "pipelined: all requests that have arrived are answered together (pipelined)",
     0},
    {"max-connections", "N", KIND_COUNT, AT(max_connections),
     "at most N at once; the rest wait in the kernel's queue", 1},
    {"workers", "N", KIND_WORKERS, AT(workers), "", 1},
    {"accept", "HOW", KIND_ACCEPT, AT(accept), "", 0},
    {"request-timeout", "S", KIND_SECONDS, AT(request_timeout),
     "for a whole request to arrive, in seconds (10)", 0},
    {"idle-timeout", "S", KIND_SECONDS, AT(idle_timeout), "between two requests (5)", 0},
    {"write-timeout", "S", KIND_SECONDS, AT(write_timeout), "for a client that takes no data (30)",
     0},
    {"backlog", "N", KIND_COUNT, AT(backlog),
     "the listen queue, cut by the kernel's own limit (4096)", 1},
    {"list", NULL, KIND_FLAG, AT(list), "list directories that have no index.html", 0},
    {"log", "FILE", KIND_TEXT, AT(log),
     "append to an access log, combined format; - is standard output", 0},
    {"stats", "FILE", KIND_TEXT, AT(stats), "write the counters as JSON at exit and at SIGUSR1", 0},
    {"user", "NAME", KIND_TEXT, AT(user), "drop privileges to this user", 0},
    {"no-sandbox", NULL, KIND_FLAG, AT(no_sandbox), "do without the sandbox", 0},
    {"no-shelf", NULL, KIND_FLAG, AT(no_file_cache),
     "open every document anew, also where connections could share it in memory", 0},
    {"origin", "URL", KIND_ORIGIN, AT(origin),
     "proxy: stand before this one origin, http://HOST:PORT, instead of asking whatever host the "
     "client names. HOST is numeric, localhost, or a name in /etc/hosts: no other is looked up",
     0},
    {"allow", "HOST:PORT", KIND_ALLOW, 0,
     "proxy: connect there, too; may be repeated (loopback addresses alone)", 0},
    {"cache", "DIR", KIND_TEXT, AT(cache),
     "proxy: where replies are stored; made if it is not there (cache)", 0},
    {"cache-size", "SIZE", KIND_SIZE, AT(cache_size),
     "proxy: of all that is stored; what was not used for longest goes first (256M)", 0},
    {"no-cache", NULL, KIND_FLAG, AT(no_cache), "proxy: store nothing", 0},
    {"origin-timeout", "S", KIND_SECONDS, AT(origin_timeout),
     "proxy: for an origin that does not connect, answer, or go on (15)", 0},
    {"max-body", "SIZE", KIND_SIZE, AT(max_body),
     "proxy: of a request's body, in bytes or with K, M or G (1G)", 0},
    {"classroom", NULL, KIND_FLAG, AT(classroom),
     "proxy: /N with N above 9999 is 414, and an origin that does not run 404", 0},
    {"help", NULL, KIND_HELP, 0, "print this", 0},
    {"version", NULL, KIND_VERSION, 0, "print the version", 0},
};

#define ROWS ((int)(sizeof rows / sizeof rows[0]))

static const struct service *const services[] = {&service_files, &service_generated,
                                                 &service_proxy};
static const char *const protocols[] = {
    [PROTOCOL_SIMPLE] = "simple",
    [PROTOCOL_PERSISTENT] = "persistent",
    [PROTOCOL_PIPELINED] = "pipelined",
};

static const struct {
    const char *name;
    const char *help;
} accepts[ACCEPT_WAYS] = {
    [ACCEPT_FEW] = {"few", "as few as the load needs wait at one listener"},
    [ACCEPT_SHARED] = {"shared", "all wait at one listener"},
    [ACCEPT_LOCK] = {"lock", "the one that holds a file lock waits there"},
    [ACCEPT_MUTEX] = {"mutex", "the one that holds a mutex waits there"},
    [ACCEPT_PASS] = {"pass", "one process accepts for all, and passes connections on"},
    [ACCEPT_QUEUE] = {"queue", "one thread accepts for all, into a queue"},
    [ACCEPT_REUSEPORT] = {"reuseport",
                          "each has a listener, and the kernel chooses, be it one that is busy"},
};

/* Of workers; the most that a queue of accepted connections holds. */
#define WORKER_LIMIT  1024
#define QUEUE_DEFAULT 1024

static bool is_known(const struct row *row, const struct model *model)
{
    return model->crew > 0 || (row->kind != KIND_WORKERS && row->kind != KIND_ACCEPT);
}

static bool knows_way(const struct model *model, int way)
{
    return (model->accepts & (1U << way)) != 0;
}

/* The first that it knows. */
static enum accept default_way(const struct model *model)
{
    int way = 0;

    while (way < ACCEPT_WAYS - 1 && !knows_way(model, way))
        way++;
    return (enum accept)way;
}

/* For each processor that this process may use. */
static int crew_size(const struct model *model)
{
    cpu_set_t set;
    int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int workers = processors * model->crew;

    return workers < WORKER_LIMIT ? workers : WORKER_LIMIT;
}

/* ---- help ---- */

#define HELP_COLUMN 26
#define HELP_WIDTH  79

/* Prints a text broken into lines, each but the first indented to the column. */
static void print_wrapped(const char *text, int column)
{
    int at = column;

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        bool first = at == column;
        if (!first && at + 1 + length > HELP_WIDTH) {
            printf("\n%*s", column, "");
            at = column;
            first = true;
        }
        printf("%s%.*s", first ? "" : " ", length, text);
        at += length + !first;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static void describe_ways(const struct model *model, char *help, int size)
{
    int length = snprintf(help, (size_t)size, "how the crew comes by connections: ");
    const char *separator = "";
    int first = default_way(model);

    for (int way = first; way < ACCEPT_WAYS; way++) {
        if (!knows_way(model, way))
            continue;
        length += snprintf(help + length, (size_t)(size - length), "%s%s: %s", separator,
                           accepts[way].name, accepts[way].help);
        separator = "; ";
    }
    snprintf(help + length, (size_t)(size - length), " (%s)", accepts[first].name);
}

static void print_row(const struct row *row, const struct model *model)
{
    char help[512], left[40];

    snprintf(left, sizeof left, "  --%s%s%s", row->name, row->argument != NULL ? " " : "",
             row->argument != NULL ? row->argument : "");
    snprintf(help, sizeof help, "%s", row->help);
    if (row->kind == KIND_WORKERS)
        snprintf(help, sizeof help, "the size of the crew (%d here: %d for each processor)",
                 crew_size(model), model->crew);
    else if (row->kind == KIND_ACCEPT)
        describe_ways(model, help, sizeof help);
    else if (row->offset == AT(max_connections) && row->kind == KIND_COUNT) {
        if (model->max_connections > 0)
            snprintf(help, sizeof help, "%s (%d)", row->help, model->max_connections);
        else
            snprintf(help, sizeof help, "%s (one for each worker%s)", row->help,
                     knows_way(model, ACCEPT_QUEUE) ? "; 1024 with a queue" : "");
    }
    printf("%-*s", HELP_COLUMN, left);
    print_wrapped(help, HELP_COLUMN);
}

static void print_help(const struct model *model)
{
    printf("Usage: %s [OPTION]... PORT\n\nA web server: ", model->name);
    print_wrapped(model->summary, 14);
    print_wrapped(model->advice, 0);
    printf("\nPORT 0 takes a free one. When the server listens it prints its address.\n\n");
    for (int i = 0; i < ROWS; i++)
        if (is_known(&rows[i], model))
            print_row(&rows[i], model);
    printf("\nSIGINT and SIGTERM finish what is under way, for at most 5 seconds; a second\n"
           "one stops at once. A summary is printed then.\n\n"
           "Examples:\n"
           "  ./%s 7799\n"
           "  ./%s --root /srv/www --bind 0.0.0.0 --user www-data --log access.log 80\n",
           model->name, model->name);
}

/* ---- reading ---- */

static bool read_count(const char *text, long least, long most, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < least || number > most)
        return false;
    *value = (int)number;
    return true;
}

static bool read_seconds(const char *text, int *milliseconds)
{
    char *end;
    double number = strtod(text, &end);

    if (strspn(text, "0123456789.") != strlen(text) || end == text || *end != '\0' ||
        number < 0.001 || number > 86400)
        return false;
    *milliseconds = (int)(number * 1000);
    return true;
}

static bool complain(const struct row *row, const char *value, const char *wanted)
{
    warnx("--%s '%s' is not %s (see --help)", row->name, value, wanted);
    return false;
}

static bool read_service(const struct row *row, const char *value, const struct service **service)
{
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
        if (strcmp(value, services[i]->name) == 0) {
            *service = services[i];
            return true;
        }
    }
    return complain(row, value, "a service that there is");
}

static bool read_protocol(const struct row *row, const char *value, enum protocol *protocol)
{
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++) {
        if (strcmp(value, protocols[i]) == 0) {
            *protocol = (enum protocol)i;
            return true;
        }
    }
    return complain(row, value, "simple, persistent or pipelined");
}

static bool read_address(struct options *options, const struct row *row, const char *value)
{
    if (!listener_is_address(value))
        return complain(row, value, "a numeric address");
    if (options->bind_count == LISTENER_LIMIT) {
        warnx("--bind can be given at most %d times", LISTENER_LIMIT);
        return false;
    }
    options->bind[options->bind_count++] = value;
    return true;
}

static bool read_accept(const struct row *row, const struct model *model, const char *value,
                        enum accept *accept)
{
    for (int way = 0; way < ACCEPT_WAYS; way++) {
        if (knows_way(model, way) && strcmp(value, accepts[way].name) == 0) {
            *accept = (enum accept)way;
            return true;
        }
    }
    return complain(row, value, "a way that this model knows");
}

/* Whether it could be the authority of a URI; without a port it has that one, or 0: none. */
static bool is_authority(const char *value, uint16_t port)
{
    struct text host;
    uint16_t found;

    return address_split(text_of(value), port, &host, &found);
}

/* The scheme may be left out; a path cannot be mapped to. */
static bool read_origin(const struct row *row, const char *value, const char **origin)
{
    static char authority[256]; /* the command line is read once, before there are threads */
    const char *start = strncasecmp(value, "http://", 7) == 0 ? value + 7 : value;
    size_t length = strcspn(start, "/");

    if (length == 0 || length >= sizeof authority || (start[length] != '\0' && start[length + 1]))
        return complain(row, value, "http://HOST:PORT");
    memcpy(authority, start, length);
    authority[length] = '\0';
    *origin = authority;
    return is_authority(authority, 80) || complain(row, value, "http://HOST:PORT");
}

static bool read_allow(struct options *options, const struct row *row, const char *value)
{
    if (!is_authority(value, 0))
        return complain(row, value, "HOST:PORT");
    if (options->allow_count == OPTIONS_ALLOW_LIMIT) {
        warnx("--allow can be given at most %d times", OPTIONS_ALLOW_LIMIT);
        return false;
    }
    options->allow[options->allow_count++] = value;
    return true;
}

static bool read_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMG";
    size_t digits = strspn(text, "0123456789");
    const char *unit = text[digits] != '\0' ? strchr(units, text[digits]) : NULL;

    if (!text_number((struct text){text, digits}, size) || *size == 0 || *size > UINT64_C(1) << 40)
        return false;
    if (unit != NULL)
        *size <<= 10 * (unit - units + 1);
    return text[digits] == '\0' || (unit != NULL && text[digits + 1] == '\0');
}

static bool read_row(struct options *options, const struct row *row, const struct model *model,
                     const char *value)
{
    void *member = (char *)options + row->offset;

    switch (row->kind) {
    case KIND_FLAG:
        *(bool *)member = true;
        return true;
    case KIND_TEXT:
        *(const char **)member = value;
        return value[0] != '\0' || complain(row, value, "a name");
    case KIND_COUNT:
        return read_count(value, row->least, 1000000, member) ||
               complain(row, value,
                        row->least == 0 ? "a whole number from 0 to 1000000"
                                        : "a whole number from 1 to 1000000");
    case KIND_SECONDS:
        return read_seconds(value, member) ||
               complain(row, value, "a number of seconds from 0.001 to 86400");
    case KIND_ADDRESS:
        return read_address(options, row, value);
    case KIND_SERVICE:
        return read_service(row, value, member);
    case KIND_PROTOCOL:
        return read_protocol(row, value, member);
    case KIND_WORKERS:
        return read_count(value, row->least, WORKER_LIMIT, member) ||
               complain(row, value, "a whole number from 1 to 1024");
    case KIND_ACCEPT:
        return read_accept(row, model, value, member);
    case KIND_ORIGIN:
        return read_origin(row, value, member);
    case KIND_ALLOW:
        return read_allow(options, row, value);
    case KIND_SIZE:
        return read_size(value, member) ||
               complain(row, value, "a number of bytes, such as 500000, 64K, 256M or 1G");
    case KIND_HELP:
    case KIND_VERSION:
        break;
    }
    return true;
}

static bool read_port(struct options *options, const char *text)
{
    int port;

    if (!read_count(text, 0, UINT16_MAX, &port)) {
        warnx("'%s' is no port: a whole number from 0 to 65535 (see --help)", text);
        return false;
    }
    options->port = (uint16_t)port;
    return true;
}

/* Rows are numbered behind all characters, so that they cannot be taken for one. */
#define FIRST_ROW 256

/* What getopt_long() could not make sense of. */
static void complain_option(int found, const char *argument)
{
    if (found == ':')
        warnx("%s wants a value (see --help)", argument);
    else if (optopt >= FIRST_ROW)
        warnx("--%s takes no value (see --help)", rows[optopt - FIRST_ROW].name);
    else if (optopt > 0)
        warnx("unknown option '-%c' (see --help)", optopt);
    else
        warnx("unknown option '%s' (see --help)", argument);
}

static enum options_verdict read_options(struct options *options, const struct model *model,
                                         int argc, char **argv)
{
    struct option table[ROWS + 1];
    int found, known = 0;

    memset(table, 0, sizeof table);
    for (int i = 0; i < ROWS; i++)
        if (is_known(&rows[i], model))
            table[known++] = (struct option){
                rows[i].name, rows[i].argument != NULL ? required_argument : no_argument, NULL,
                FIRST_ROW + i};
    opterr = 0;
    while ((found = getopt_long(argc, argv, ":", table, NULL)) >= 0) {
        const struct row *row;
        if (found < FIRST_ROW) {
            complain_option(found, argv[optind - 1]);
            return OPTIONS_BAD;
        }
        row = &rows[found - FIRST_ROW];
        if (row->kind == KIND_HELP) {
            print_help(model);
            return OPTIONS_DONE;
        }
        if (row->kind == KIND_VERSION) {
            printf("%s (fork-vs-thread) %s\n", model->name, PROJECT_VERSION);
            return OPTIONS_DONE;
        }
        if (!read_row(options, row, model, optarg))
            return OPTIONS_BAD;
    }
    return OPTIONS_GOOD;
}

static enum options_verdict read_all(struct options *options, const struct model *model, int argc,
                                     char **argv)
{
    enum options_verdict verdict = read_options(options, model, argc, argv);

    if (verdict != OPTIONS_GOOD)
        return verdict;
    if (argc - optind != 1) {
        warnx(argc == optind ? "the port is missing (see --help)"
                             : "one port is wanted, and nothing else (see --help)");
        return OPTIONS_BAD;
    }
    if (!options->tls && (options->certificate != NULL || options->key != NULL)) {
        warnx("--cert and --key are of use with --tls alone (see --help)");
        return OPTIONS_BAD;
    }
    if (options->tls && options->udp) {
        warnx("--udp is plain HTTP, and does not go with --tls (see --help)");
        return OPTIONS_BAD;
    }
    return read_port(options, argv[optind]) ? OPTIONS_GOOD : OPTIONS_BAD;
}

/* A worker serves one connection at a time, where it does not say otherwise: more workers than
 * connections are of no use. */
static void settle_crew(struct options *options, const struct model *model)
{
    if (model->crew == 0 || model->max_connections > 0)
        return;
    if (options->accept == ACCEPT_QUEUE) {
        if (options->max_connections == 0)
            options->max_connections = QUEUE_DEFAULT;
    } else if (options->max_connections == 0 || options->workers < options->max_connections) {
        options->max_connections = options->workers;
    } else {
        options->workers = options->max_connections;
    }
}

enum options_verdict options_read(struct options *options, const struct model *model, int argc,
                                  char **argv)
{
    enum options_verdict verdict;

    *options = (struct options){
        .root = "data",
        .service = &service_files,
        .max_age = 60,
        .protocol = PROTOCOL_PIPELINED,
        .max_connections = model->max_connections,
        .workers = model->crew > 0 ? crew_size(model) : 0,
        .accept = default_way(model),
        .request_timeout = 10000,
        .idle_timeout = 5000,
        .write_timeout = 30000,
        .backlog = 4096,
        .origin_timeout = 15000,
        .max_body = UINT64_C(1) << 30,
        .cache = "cache",
        .cache_size = UINT64_C(256) << 20,
    };
    verdict = read_all(options, model, argc, argv);
    if (options->certificate == NULL)
        options->certificate = "certificate/cert.pem";
    if (options->key == NULL)
        options->key = "certificate/key.pem";
    settle_crew(options, model);
    return verdict;
}

const char *options_way(enum accept way)
{
    return accepts[way].name;
}
