/* Writes the trace of a server to the file of --trace, in the JSON of Chrome's traces. */
#ifndef COMMON_TRACE_FILE_H
#define COMMON_TRACE_FILE_H

#include "common/server_state.h"

/* Returns the size of the memory for the trace, which the scoreboard has; 0 without --trace. */
size_t trace_file_memory(const struct server *server);
/* Opens the file, and begins the trace; does nothing without --trace. False after it has printed
 * why. */
bool trace_file_open(struct server *server, char **arguments);
/* Ends the trace. Says so if events were lost. */
void trace_file_end(struct server *server);
/* Writes the trace, in the process that opened it; does nothing without --trace. False after it has
 * said that it cannot. */
bool trace_file_write(struct server *server);

#endif
