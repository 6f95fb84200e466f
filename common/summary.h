/* The summary of what a server has done, and what it cost. */
#ifndef COMMON_SUMMARY_H
#define COMMON_SUMMARY_H

#include "common/server_state.h"

/* Prints one line for people on standard error. */
void summary_print(const struct server *server);

/* Replaces the content of the file by one JSON object; does nothing if the file is -1. False after
 * it has said that it cannot. */
bool summary_write(const struct server *server, int file);

#endif
