/* Prints what a server is as JSON, so that tests, studies and the manual can ask instead of guess.
 */
#include "common/command_line/describe.h"

#include "common/base/uring.h"
#include "common/command_line/option_table.h"
#include "common/services.h"

#include <stdio.h>
#include <string.h>

static void put_string(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

/* A missing or empty text is null. */
static void put_text(const char *text)
{
    if (text != NULL && text[0] != '\0')
        put_string(text);
    else
        printf("null");
}

static void put_member(const char *name, const char *text)
{
    printf("  \"%s\": ", name);
    put_text(text);
    printf(",\n");
}

/* The model's own default comes first. */
static void put_ways(const char *name, const struct model_ways *ways, const struct model *model)
{
    const char *separator = "";

    printf("  \"%s\": [", name);
    for (int way = 0; way < ways->count; way++) {
        if (!ways->knows(model, way))
            continue;
        printf("%s", separator);
        put_string(ways->ways[way].name);
        separator = ", ";
    }
    printf("],\n");
}

static void put_services(void)
{
    printf("  \"services\": [");
    for (int i = 0; services_name(i) != NULL; i++) {
        printf("%s", i > 0 ? ", " : "");
        put_string(services_name(i));
    }
    printf("],\n");
}

/* Zero is null. */
static void put_count(int count)
{
    if (count > 0)
        printf("%d", count);
    else
        printf("null");
}

static void put_default(const struct option_row *row, const struct model *model)
{
    const struct model_ways *ways = option_table_ways(row);
    int way = ways != NULL ? model_first_way(ways, model) : -1;

    switch (row->kind) {
    case OPTION_CONNECTIONS:
        put_count(model->max_connections);
        break;
    case OPTION_WORKERS:
        put_count(model_default_workers(model));
        break;
    case OPTION_ACCEPT:
    case OPTION_SHARE:
        put_text(way >= 0 ? ways->ways[way].name : NULL);
        break;
    case OPTION_LIMIT:
        put_count(0);
        break;
    case OPTION_ADDRESS:
        printf("[\"127.0.0.1\", \"::1\"]");
        break;
    case OPTION_COUNT:
    case OPTION_SECONDS:
        printf("%s", row->standard != NULL ? row->standard : "null");
        break;
    default:
        put_text(row->standard);
    }
}

/* The keys are the names of the options, as identifiers. */
static void put_defaults(const struct model *model)
{
    const char *separator = "";

    printf("  \"defaults\": {");
    for (int i = 0; i < option_table_rows; i++) {
        const struct option_row *row = &option_table[i];
        if (row->argument == NULL)
            continue;
        printf("%s\n    \"", separator);
        for (const char *letter = row->name; *letter != '\0'; letter++)
            putchar(*letter == '-' ? '_' : *letter);
        printf("\": ");
        put_default(row, model);
        separator = ",";
    }
    printf("\n  },\n");
}

static void put_option(const struct option_row *row, const struct model *model)
{
    char help[512], standard[80];

    option_table_help(row, model, help, sizeof help);
    option_table_default(row, model, standard, sizeof standard);
    printf("\n    {\"name\": ");
    put_string(row->name);
    printf(", \"argument\": ");
    put_text(row->argument);
    printf(", \"default\": ");
    put_text(standard);
    printf(",\n     \"help\": ");
    put_string(help);
    printf("}");
}

static void put_options(const struct model *model)
{
    const char *separator = "";

    printf("  \"options\": [");
    for (int i = 0; i < option_table_rows; i++) {
        if (option_table[i].help == NULL || !option_table_has(&option_table[i], model))
            continue;
        printf("%s", separator);
        put_option(&option_table[i], model);
        separator = ",";
    }
    printf("\n  ]\n");
}

void describe_print(const struct model *model)
{
    printf("{\n");
    put_member("name", model->name);
    put_member("version", PROJECT_VERSION);
    put_member("summary", model->summary);
    printf("  \"advice\": {\"take\": ");
    put_string(model->take);
    printf(", \"avoid\": ");
    put_string(model->avoid);
    printf("},\n");
    put_member("makes", model_makes(model));
    put_member("needs", model->rings ? "io_uring" : NULL);
    printf("  \"available\": %s,\n", !model->rings || uring_is_possible(1) ? "true" : "false");
    printf("  \"lasting\": %s,\n", model_lasts(model) ? "true" : "false");
    printf("  \"defers\": %s,\n", model->defers ? "true" : "false");
    printf("  \"workers_per_processor\": %d,\n", model->workers_per_processor);
    put_ways("accept", &model_accept_ways, model);
    put_ways("share", &model_share_ways, model);
    printf("  \"template\": %s,\n", model->has_template ? "true" : "false");
    put_services();
    put_defaults(model);
    put_options(model);
    printf("}\n");
}
