/* The stages that serve an entry of the cache. */
#ifndef COMMON_PROXY_SERVE_CACHED_H
#define COMMON_PROXY_SERVE_CACHED_H

#include "common/proxy/send_response.h"

/* Values of `origin_status` if the origin has sent no response. */
#define SERVE_CACHED_NOT_ASKED   (-1)
#define SERVE_CACHED_NO_RESPONSE 0

/* Responds with the entry, without asking the origin. */
enum service_progress serve_cached_run(struct cache_lookup *lookup, struct service_call *call);
/* Responds with the part of a response if it has the range that is asked for. If it has only the
 * beginning, has the origin asked for the rest. Otherwise looks again, for a whole entry only. */
enum service_progress serve_cached_part(struct cache_lookup *lookup, struct service_call *call);
/* As serve_cached_run(), after the origin was asked: `origin_status` is that of its response, and
 * `fields` are those of the entry, perhaps updated. */
enum service_progress serve_cached_respond(struct cache_lookup *lookup, struct service_call *call,
                                           struct text fields, int origin_status);

/* Writes the head of an entry's response, and has the writer send the body from its file. */
void serve_cached_write_head(const struct cache_lookup *lookup, struct response_writer *writer,
                             struct service_call *call);
/* Sends a stale entry, and then asks the origin about it. */
enum service_progress serve_cached_stale(struct cache_store *store, struct fetch *fetch,
                                         struct service_call *call);

#endif
