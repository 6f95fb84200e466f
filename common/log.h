/* The access log, in the combined format. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include "common/base/clock.h"
#include "common/http/date.h"
#include "common/http/request.h"
#include "common/net/transport.h"

/* Writes the text if the reader takes it now; else drops it. */
bool log_write(int file, struct text text);

/* Writes the line of one response with a single write; nothing if `log` is -1. */
void log_response(int log, const struct transport *client, const struct request *request,
                  int status, uint64_t bytes, struct moment now);

#endif
