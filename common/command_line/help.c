/* Prints the help text: what the server is, its options, and examples. */
#include "common/command_line/help.h"

#include "common/command_line/option_table.h"

#include <stdio.h>
#include <string.h>

#define TEXT_LIMIT 512

#define COLUMN 26
#define WIDTH  79

/* Prints a text broken into lines, each but the first indented to the column. */
static void print_wrapped(const char *text, int column)
{
    int at = column;

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        bool first = at == column;
        if (!first && at + 1 + length > WIDTH) {
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

static void print_row(const struct option_row *row, const struct model *model)
{
    char left[40], standard[80], help[TEXT_LIMIT], text[TEXT_LIMIT + sizeof standard + 3];

    snprintf(left, sizeof left, "  --%s%s%s", row->name, row->argument != NULL ? " " : "",
             row->argument != NULL ? row->argument : "");
    option_table_help(row, model, help, sizeof help);
    option_table_default(row, model, standard, sizeof standard);
    if (standard[0] != '\0')
        snprintf(text, sizeof text, "%s (%s)", help, standard);
    else
        snprintf(text, sizeof text, "%s", help);
    if (strlen(left) < COLUMN - 1)
        printf("%-*s", COLUMN, left);
    else
        printf("%s\n%*s", left, COLUMN, "");
    print_wrapped(text, COLUMN);
}

static void print_advice(const struct model *model)
{
    char text[TEXT_LIMIT];

    snprintf(text, sizeof text, "Take it %s. Do not take it %s.", model->take, model->avoid);
    print_wrapped(text, 0);
}

static bool is_shown(const struct option_row *row, const struct model *model)
{
    return row->help != NULL && option_table_has(row, model);
}

void help_print(const struct model *model)
{
    char what[TEXT_LIMIT];

    printf("Usage: %s [OPTION]... PORT\n\n", model->name);
    snprintf(what, sizeof what, "A web server: %s.", model->summary);
    print_wrapped(what, 0);
    print_advice(model);
    printf("\nPORT 0 takes a free one. When the server listens it prints its address.\n\n");
    for (int i = 0; i < option_table_rows; i++)
        if (is_shown(&option_table[i], model))
            print_row(&option_table[i], model);
    printf("\nSIGINT and SIGTERM finish the requests in progress, for as long as --stop-timeout\n"
           "says; a second signal stops the server at once. At its end it prints a summary.\n\n"
           "Examples:\n"
           "  ./%s 7799\n"
           "  ./%s --root /srv/www --bind 0.0.0.0 --user www-data --log access.log 80\n",
           model->name, model->name);
}
