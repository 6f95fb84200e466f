/* Reads the command line into the options, by the table of options. */
#include "common/command_line/command_line.h"

#include "common/command_line/describe.h"
#include "common/command_line/help.h"
#include "common/command_line/option_table.h"
#include "common/connection_room.h"
#include "common/net/address.h"
#include "common/net/listener_open.h"
#include "common/services.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any host and port. */
#define AUTHORITY_SIZE 256

/* ---- values ---- */

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

static bool complain(const struct option_row *row, const char *value, const char *wanted)
{
    warnx("--%s '%s' is not %s (see --help)", row->name, value, wanted);
    return false;
}

static bool complain_of_service(const struct option_row *row, const char *value)
{
    char names[160] = "";
    size_t used = 0;

    for (int i = 0; services_name(i) != NULL && used < sizeof names; i++) {
        const char *before = services_name(i + 1) != NULL ? ", " : " or ";
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? before : "",
                                 services_name(i));
    }
    return complain(row, value, names);
}

static bool read_service(const struct option_row *row, const char *value,
                         const struct service **service)
{
    *service = services_find(value);
    return *service != NULL || complain_of_service(row, value);
}

static bool read_switch(const struct option_row *row, const char *value, bool *on)
{
    *on = strcmp(value, "on") == 0;
    return *on || strcmp(value, "off") == 0 || complain(row, value, "on or off");
}

static bool read_pages(const struct option_row *row, const char *value, bool *huge)
{
    *huge = strcmp(value, "huge") == 0;
    return *huge || strcmp(value, "small") == 0 || complain(row, value, "small or huge");
}

static bool read_protocol(const struct option_row *row, const char *value, enum protocol *protocol)
{
    for (int i = PROTOCOL_SIMPLE; i <= PROTOCOL_PIPELINED; i++) {
        if (strcmp(value, option_table_protocol((enum protocol)i)) == 0) {
            *protocol = (enum protocol)i;
            return true;
        }
    }
    return complain(row, value, "simple, persistent or pipelined");
}

static bool read_forwarded(const struct option_row *row, const char *value, int *number)
{
    const char *word;

    for (*number = 0; (word = option_table_forwarded(*number)) != NULL; ++*number)
        if (strcmp(value, word) == 0)
            return true;
    return complain(row, value, "standard, x, both or off");
}

static bool read_address(struct options *options, const struct option_row *row, const char *value)
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

/* The parts of a way may all be separated by commas, too. */
static bool names_way(const char *value, const char *name)
{
    char separator = strchr(value, ',') != NULL ? ',' : '-';

    while (*name != '\0' && *value == (*name == '-' ? separator : *name)) {
        value++;
        name++;
    }
    return *value == '\0' && *name == '\0';
}

static bool read_way(const struct option_row *row, const struct model *model, const char *value,
                     int *way)
{
    const struct model_ways *ways = option_table_ways(row);

    for (*way = 0; *way < ways->count; ++*way)
        if (ways->knows(model, *way) && names_way(value, ways->ways[*way].name))
            return true;
    return complain(row, value, "one of the words that --help lists");
}

/* Returns true if the value could be the authority of a URI. If `port` is 0, it must name one. */
static bool is_authority(struct text value, uint16_t port)
{
    struct text host;
    uint16_t found;

    return address_split(value, port, &host, &found);
}

/* The scheme may be left out; a path is refused. */
static bool read_origin(struct options *options, const struct option_row *row, const char *value)
{
    struct text *origin = &options->origin;
    bool tls = strncasecmp(value, "https://", 8) == 0;
    const char *start = tls ? value + 8 : strncasecmp(value, "http://", 7) == 0 ? value + 7 : value;
    size_t length = strcspn(start, "/");
    bool ends = start[length] == '\0' || start[length + 1] == '\0';

    *origin = (struct text){start, length};
    options->origin_tls = tls;
    return (ends && length > 0 && length < AUTHORITY_SIZE && is_authority(*origin, 80)) ||
           complain(row, value, "http://HOST:PORT or https://HOST:PORT");
}

static bool read_allow(struct options *options, const struct option_row *row, const char *value)
{
    if (!is_authority(text_of(value), 0) && strcmp(value, "loopback") != 0)
        return complain(row, value, "HOST:PORT or loopback");
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

static bool read_whole(const struct option_row *row, const char *value, int most, int *number)
{
    char wanted[60];

    snprintf(wanted, sizeof wanted, "a whole number from %d to %d", row->least, most);
    return read_count(value, row->least, most, number) || complain(row, value, wanted);
}

static bool read_number(const struct option_row *row, const char *value, void *member)
{
    switch (row->kind) {
    case OPTION_SECONDS:
        return read_seconds(value, member) ||
               complain(row, value, "a number of seconds from 0.001 to 86400");
    case OPTION_WORKERS:
        return read_whole(row, value, MODEL_WORKER_LIMIT, member);
    case OPTION_SIZE:
        return read_size(value, member) ||
               complain(row, value, "a number of bytes, such as 500000, 64K, 256M or 1G");
    default:
        return read_whole(row, value, 1000000, member);
    }
}

static bool read_row(struct options *options, const struct option_row *row,
                     const struct model *model, const char *value)
{
    void *member = (char *)options + row->offset;

    switch (row->kind) {
    case OPTION_FLAG:
    case OPTION_TEMPLATE:
        *(bool *)member = true;
        return true;
    case OPTION_SWITCH:
        return read_switch(row, value, member);
    case OPTION_TEXT:
        *(const char **)member = value;
        return value[0] != '\0' || complain(row, value, "a name");
    case OPTION_COUNT:
    case OPTION_CONNECTIONS:
    case OPTION_LIMIT:
    case OPTION_SECONDS:
    case OPTION_SIZE:
    case OPTION_WORKERS:
        return read_number(row, value, member);
    case OPTION_ADDRESS:
        return read_address(options, row, value);
    case OPTION_SERVICE:
        return read_service(row, value, member);
    case OPTION_PROTOCOL:
        return read_protocol(row, value, member);
    case OPTION_FORWARDED:
        return read_forwarded(row, value, member);
    case OPTION_ACCEPT:
    case OPTION_SHARE:
        return read_way(row, model, value, member);
    case OPTION_ORIGIN:
        return read_origin(options, row, value);
    case OPTION_ALLOW:
        return read_allow(options, row, value);
    case OPTION_PAGES:
        return read_pages(row, value, member);
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_DESCRIBE:
        break;
    }
    return true;
}

static bool read_port(struct options *options, const char *text)
{
    int port;

    if (!read_count(text, 0, UINT16_MAX, &port)) {
        warnx("'%s' is not a port: a whole number from 0 to 65535 (see --help)", text);
        return false;
    }
    options->port = (uint16_t)port;
    return true;
}

/* ---- the command line ---- */

/* getopt_long() returns FIRST_ROW plus the row: no character has such a number. */
#define FIRST_ROW 256

/* Reports an option that getopt_long() did not accept. */
static void complain_option(int found, const char *argument)
{
    if (found == ':')
        warnx("%s wants a value (see --help)", argument);
    else if (optopt >= FIRST_ROW)
        warnx("--%s takes no value (see --help)", option_table[optopt - FIRST_ROW].name);
    else if (optopt > 0)
        warnx("unknown option '-%c' (see --help)", optopt);
    else
        warnx("unknown option '%s' (see --help)", argument);
}

static void fill_long_options(struct option *known, const struct model *model)
{
    for (int i = 0; i < option_table_rows; i++)
        if (option_table_has(&option_table[i], model))
            *known++ = (struct option){
                .name = option_table[i].name,
                .has_arg = option_table[i].argument != NULL ? required_argument : no_argument,
                .val = FIRST_ROW + i,
            };
    *known = (struct option){0};
}

/* Returns true if the option asks for something to be printed instead of a server. */
static bool print_instead(enum option_kind kind, const struct model *model)
{
    if (kind == OPTION_HELP)
        help_print(model);
    else if (kind == OPTION_VERSION)
        printf("%s (fork-vs-thread) %s\n", model->name, PROJECT_VERSION);
    else if (kind == OPTION_DESCRIBE)
        describe_print(model);
    else
        return false;
    return true;
}

static enum command_line read_options(struct options *options, const struct model *model, int argc,
                                      char **argv, bool *given)
{
    struct option known[OPTION_TABLE_LIMIT + 1];
    int found;

    fill_long_options(known, model);
    opterr = 0;
    while ((found = getopt_long(argc, argv, ":h", known, NULL)) >= 0) {
        const struct option_row *row;
        if (found == 'h') {
            help_print(model);
            return COMMAND_LINE_DONE;
        }
        if (found < FIRST_ROW) {
            complain_option(found, argv[optind - 1]);
            return COMMAND_LINE_BAD;
        }
        row = &option_table[found - FIRST_ROW];
        if (print_instead(row->kind, model))
            return COMMAND_LINE_DONE;
        if (!read_row(options, row, model, optarg))
            return COMMAND_LINE_BAD;
        given[found - FIRST_ROW] = true;
    }
    return COMMAND_LINE_GOOD;
}

static bool fits_together(const struct options *options)
{
    if (!options->tls && (options->certificate != NULL || options->key != NULL)) {
        warnx("--cert and --key need --tls (see --help)");
        return false;
    }
    if (options->ballast_huge && options->ballast == 0) {
        warnx("--ballast-pages needs --ballast (see --help)");
        return false;
    }
    if (options->tls && options->udp) {
        warnx("--udp is plain HTTP, and cannot be combined with --tls (see --help)");
        return false;
    }
    return true;
}

/* Workers that serve one connection at a time limit the connections: one for each worker, unless a
 * queue holds more. */
static void match_workers(struct options *options, const struct model *model)
{
    if (model->workers_per_processor == 0 || model->max_connections > 0)
        return;
    if (options->accept == ACCEPT_QUEUE) {
        if (options->max_connections == 0)
            options->max_connections = OPTION_TABLE_QUEUE;
    } else if (options->max_connections == 0 || options->workers < options->max_connections) {
        options->max_connections = options->workers;
    } else {
        options->workers = options->max_connections;
    }
}

/* The default is that of the model, or fewer connections where memory would not be enough. */
static void fill_connections(struct options *options, const struct model *model)
{
    uint64_t room = connection_room(options, model), most = (uint64_t)model->max_connections;

    if (room == 0)
        room = 1;
    options->max_connections = (int)(room < most ? room : most);
    if (options->max_connections < model->max_connections)
        warnx("the memory limit of the control group is enough for %d connections at once, not %d",
              options->max_connections, model->max_connections);
}

/* Fills in the defaults of the options that the command line did not give. */
static void fill_defaults(struct options *options, const struct model *model, const bool *given)
{
    for (int i = 0; i < option_table_rows; i++) {
        const struct option_row *row = &option_table[i];
        if (given[i])
            continue;
        if (row->standard != NULL)
            read_row(options, row, model, row->standard);
        else if (row->kind == OPTION_CONNECTIONS)
            fill_connections(options, model);
        else if (row->kind == OPTION_WORKERS)
            options->workers = model_default_workers(model);
        else if (option_table_ways(row) != NULL)
            *(int *)((char *)options + row->offset) =
                model_first_way(option_table_ways(row), model);
    }
    match_workers(options, model);
}

enum command_line command_line_read(struct options *options, const struct model *model, int argc,
                                    char **argv)
{
    bool given[OPTION_TABLE_LIMIT] = {false};
    enum command_line verdict;

    *options = (struct options){0};
    verdict = read_options(options, model, argc, argv, given);
    if (verdict != COMMAND_LINE_GOOD)
        return verdict;
    if (argc - optind != 1) {
        warnx(argc == optind ? "the port is missing (see --help)"
                             : "there must be one port and nothing else (see --help)");
        return COMMAND_LINE_BAD;
    }
    if (!fits_together(options) || !read_port(options, argv[optind]))
        return COMMAND_LINE_BAD;
    fill_defaults(options, model, given);
    return COMMAND_LINE_GOOD;
}
