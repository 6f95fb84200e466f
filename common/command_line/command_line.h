/* The command line of a server. */
#ifndef COMMON_COMMAND_LINE_H
#define COMMON_COMMAND_LINE_H

#include "common/options.h"

enum command_line {
    COMMAND_LINE_GOOD,
    COMMAND_LINE_DONE, /* it asked for help, for example, which was printed */
    COMMAND_LINE_BAD,  /* an error message was printed */
};

/* Fills in the options from the command line, and defaults for the rest. */
enum command_line command_line_read(struct options *options, const struct model *model, int argc,
                                    char **argv);

#endif
