/* The table of options: names, defaults and help texts of all servers stand here alone. */
#ifndef COMMON_OPTION_TABLE_H
#define COMMON_OPTION_TABLE_H

#include "common/options.h"

#include <stddef.h>

/* How the value of an option is read. */
enum option_kind {
    OPTION_FLAG,
    OPTION_SWITCH, /* on or off */
    OPTION_TEXT,
    OPTION_COUNT,
    OPTION_SECONDS,
    OPTION_ADDRESS,
    OPTION_SERVICE,
    OPTION_PROTOCOL,
    OPTION_FORWARDED,
    OPTION_CONNECTIONS,
    OPTION_LIMIT, /* a count that has no fixed default */
    OPTION_WORKERS,
    OPTION_ACCEPT,
    OPTION_SHARE,
    OPTION_TEMPLATE, /* a flag */
    OPTION_ORIGIN,
    OPTION_ALLOW,
    OPTION_SIZE,
    OPTION_PAGES,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_DESCRIBE,
};

struct option_row {
    const char *name;
    const char *argument; /* its placeholder; NULL: the option takes no value */
    enum option_kind kind;
    size_t offset;        /* of the member of struct options */
    const char *standard; /* the default, as on a command line; NULL: none, or the model has it */
    const char *help;     /* NULL: an old name, which the help does not show */
    int least;            /* of a count */
};

#define OPTION_TABLE_LIMIT 64
extern const struct option_row option_table[];
extern const int option_table_rows;

/* The ways that an option chooses from; NULL if its value is no way. */
const struct model_ways *option_table_ways(const struct option_row *row);

/* Returns true if the model has the option. */
bool option_table_has(const struct option_row *row, const struct model *model);

/* Writes the help text, without the default. */
void option_table_help(const struct option_row *row, const struct model *model, char *help,
                       size_t size);
/* Writes the default as a person reads it; nothing if there is none. */
void option_table_default(const struct option_row *row, const struct model *model, char *text,
                          size_t size);

/* Returns the words of --forwarded by their numbers; NULL behind the last one. */
const char *option_table_forwarded(int number);
/* Returns the name of a protocol, as --protocol takes it. */
const char *option_table_protocol(enum protocol protocol);

/* The room that --accept queue has for connections, by default. */
#define OPTION_TABLE_QUEUE 1024

#endif
