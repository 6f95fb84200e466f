/* Sends an entry to the client while another request stores it. */
#include "common/proxy/follow.h"

#include "common/proxy/cache_counters.h"
#include "common/proxy/cache_growing.h"
#include "common/proxy/fetch_wakeup.h"
#include "common/proxy/proxy_setup.h"
#include "common/proxy/send_response.h"
#include "common/proxy/serve_cached.h"

#include <unistd.h>

/* The other request wakes this one, which also looks after so long: the other may have died. */
#define LOOK_MILLISECONDS 1000
/* How long it waits beyond the timeout of the origin for more of the body. */
#define WAIT_MILLISECONDS 5000

static void begin(struct cache_lookup *lookup, struct fetch *fetch, struct service_call *call)
{
    serve_cached_write_head(lookup, &fetch->writer, call);
    call->response->status = lookup->entry.record.status;
    call->client_deadline = 0;
    fetch_renew_deadline(fetch, call);
}

/* Takes note of what has come, and whether more will. */
static void look(const struct cache_lookup *lookup, struct fetch *fetch,
                 const struct service_call *call)
{
    struct response_writer *writer = &fetch->writer;
    bool thorough = call->now.milliseconds >= lookup->collapse.look_at;
    uint64_t length;
    enum cache_growing_state state = cache_growing_look(&lookup->entry, thorough, &length);

    if (length > writer->file_end) {
        writer->file_end = length;
        fetch_renew_deadline(fetch, call);
    }
    writer->complete = state == CACHE_GROWING_WHOLE;
    writer->broken = state == CACHE_GROWING_LOST ||
                     (state == CACHE_GROWING_GROWS &&
                      call->now.milliseconds >= fetch->deadline + WAIT_MILLISECONDS);
}

/* Waits for news of the entry. */
static enum service_progress await(struct cache_lookup *lookup, struct service_call *call)
{
    lookup->collapse.look_at = call->now.milliseconds + LOOK_MILLISECONDS;
    call->descriptor = lookup->collapse.news;
    call->to_write = false;
    call->deadline = lookup->collapse.look_at;
    return SERVICE_WAITS;
}

static void listen_again(struct cache_lookup *lookup)
{
    if (lookup->collapse.news >= 0)
        close(lookup->collapse.news);
    lookup->collapse.news = fetch_wakeup_listen(lookup->cache, lookup->entry.name);
}

/* It listens before it looks, so that no news is missed. If the rest is lost, the client first gets
 * what has come. */
enum service_progress follow_run(struct cache_lookup *lookup, struct fetch *fetch,
                                 struct service_call *call)
{
    struct response_writer *writer = &fetch->writer;
    enum transfer transfer;

    if (writer->file < 0)
        begin(lookup, fetch, call);
    if (call->client_gone)
        return SERVICE_FAILED;
    if (!writer->complete && !writer->broken) {
        listen_again(lookup);
        look(lookup, fetch, call);
    }
    transfer = send_response_pass_on(fetch, call);
    if (writer->ended) {
        cache_counters_note(call->context, CACHE_COLLAPSED, call->body_bytes);
        return SERVICE_DONE;
    }
    if (transfer == TRANSFER_READ || transfer == TRANSFER_WRITE)
        return fetch_wait(fetch, call, fetch_events(transfer), 0);
    if (transfer != TRANSFER_DONE)
        return SERVICE_FAILED;
    return writer->broken ? send_response_break_off(fetch, call) : await(lookup, call);
}
