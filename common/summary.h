/* What a server has done, and what it cost. */
#ifndef COMMON_SUMMARY_H
#define COMMON_SUMMARY_H

struct server;

/* One line for people, on standard error. */
void summary_print(const struct server *server);

/* The same as one JSON object, in place of what the file held; nothing if it is -1. */
void summary_write(const struct server *server, int file);

#endif
