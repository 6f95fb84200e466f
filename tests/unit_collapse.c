/* Tests of collapse.c: which request fetches a response, which ones wait for it, and how long, by a
 * simulated clock. */
#include "common/base/clock.h"
#include "common/proxy/cache_shared.h"
#include "common/proxy/fetch_wakeup.h"
#include "common/proxy/proxy_service.h"
#include "common/proxy/proxy_setup.h"

#include "tests/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT  1000
#define PATIENCE (TIMEOUT + 5000)
#define MOST     (TIMEOUT + 60000)
#define MIB      (1024 * 1024)

static char path[64], authority[32];
static struct proxy proxy;
static int listener;
static struct text uri;
static char uri_text[64], name[CACHE_NAME_SIZE];

static enum transfer write_nothing(struct transport *transport, struct text data, uint64_t more,
                                   size_t *count)
{
    (void)transport;
    (void)data;
    (void)more;
    *count = 0;
    return TRANSFER_WRITE;
}

static void abandon_nothing(struct transport *transport)
{
    (void)transport;
}

/* A client that reads nothing. */
static const struct transport_kind stalled = {.write = write_nothing, .abandon = abandon_nothing};

static struct service_context context = {.service = &service_proxy,
                                         .protocol = PROTOCOL_PIPELINED,
                                         .request_timeout = 10000,
                                         .write_timeout = 3000,
                                         .state = &proxy};

/* ---- the proxy, and a silent origin ---- */

static void open_origin(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;

    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    snprintf(authority, sizeof authority, "127.0.0.1:%u", ntohs(address.sin_port));
    snprintf(uri_text, sizeof uri_text, "http+http://%s/", authority);
    uri = text_of(uri_text);
}

static int set_up(void **state)
{
    struct address_list destination;
    struct cache_entry entry;
    struct text host;
    uint16_t port;

    (void)state;
    strcpy(path, "/tmp/unit_collapse.XXXXXX");
    assert_non_null(mkdtemp(path));
    open_origin();
    proxy = (struct proxy){
        .origin = text_of(authority), .name = "me", .timeout = TIMEOUT, .allowed_count = 1};
    assert_true(address_split(text_of(authority), 0, &host, &port));
    assert_true(address_find(&destination, TEXT(""), host, port));
    proxy.allowed[0] = destination.addresses[0];
    proxy.origin_port = port;
    proxy.pool = origin_pool_open(&(struct origin_pool_limits){0});
    assert_non_null(proxy.pool);
    assert_true(cache_open(&proxy.cache, path, MIB));
    context.board = scoreboard_make(1, 0, (struct scoreboard_room){0}).board;
    cache_find(&proxy.cache, uri, TEXT(""), &entry, name);
    return 0;
}

static int tear_down(void **state)
{
    char command[96];

    (void)state;
    cache_close(&proxy.cache);
    origin_pool_close(proxy.pool);
    close(listener);
    snprintf(command, sizeof command, "rm -rf %s", path);
    return system(command);
}

/* ---- clients ---- */

struct client {
    struct transport transport;
    struct request request;
    struct response response;
    struct service_call call;
    enum service_progress progress;
};

static const struct moment start = {.seconds = 1700000000, .milliseconds = 1000000};

static void step(struct client *client)
{
    client->progress = service_proxy.step(&client->call);
}

static void ask(struct client *client)
{
    size_t taken;

    *client = (struct client){.transport = {.kind = &stalled, .socket = listener}};
    request_start(&client->request);
    response_start(&client->response);
    assert_int_equal(
        request_read(&client->request, TEXT("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), &taken),
        REQUEST_WHOLE);
    client->call = (struct service_call){.context = &context,
                                         .request = &client->request,
                                         .client = &client->transport,
                                         .response = &client->response,
                                         .now = start,
                                         .keeps_connection = true};
    step(client);
}

static void leave(struct client *client)
{
    if (client->call.work != NULL)
        service_proxy.end(&client->call);
    response_end(&client->response);
}

static bool is_pipe(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* It waits for news of another fetch. */
static bool waits(const struct client *client)
{
    return client->progress == SERVICE_WAITS && is_pipe(client->call.descriptor);
}

/* It has a connection to the origin. */
static bool has_asked(const struct client *client)
{
    return client->progress == SERVICE_WAITS && !is_pipe(client->call.descriptor);
}

static bool has_news(const struct client *client)
{
    struct pollfd wait = {.fd = client->call.descriptor, .events = POLLIN};

    return poll(&wait, 1, 0) > 0;
}

/* Advances the clock until the client does not wait any more, or `limit` is reached. Until `until`,
 * the fetch that it waits for receives something every `pace`. Returns the time. All are in
 * milliseconds from the start. */
static int64_t advance(struct client *client, int64_t limit, int64_t pace, int64_t until)
{
    int64_t *now = &client->call.now.milliseconds, moved = start.milliseconds;

    while (waits(client) && *now < start.milliseconds + limit) {
        if (has_news(client)) {
            step(client);
            continue;
        }
        assert_true(client->call.deadline > *now);
        *now = client->call.deadline;
        if (*now - moved >= pace && *now < start.milliseconds + until) {
            moved = *now;
            fetch_lock_note_progress(&proxy.cache, name, moved);
        }
        assert_int_equal(service_proxy.expire(&client->call), SERVICE_WAITS);
        step(client);
    }
    return *now - start.milliseconds;
}

static int lock_as_leader(void)
{
    int lock = fetch_lock_take(&proxy.cache, name);

    assert_true(lock >= 0);
    return lock;
}

static void store(const char *fields)
{
    struct cache_writer writer;
    struct cache_record record = {.uri = uri,
                                  .reason = TEXT("OK"),
                                  .fields = text_of(fields),
                                  .status = 200,
                                  .minor = 1,
                                  .requested = start.seconds - 100,
                                  .received = start.seconds - 100};

    assert_true(cache_writer_begin(&proxy.cache, &writer, &record, TEXT("")));
    assert_true(cache_writer_add(&proxy.cache, &writer, TEXT("body")));
    assert_true(cache_writer_commit(&proxy.cache, &writer));
    cache_writer_end(&proxy.cache, &writer);
}

/* ---- the cases ---- */

/* A fetch that receives nothing for too long is repeated by a waiting request. */
static void check_silent(void **state)
{
    struct client client;
    int64_t time;
    int lock = lock_as_leader();

    (void)state;
    ask(&client);
    assert_true(waits(&client));
    time = advance(&client, MOST, MOST, 0);
    assert_true(has_asked(&client));
    assert_in_range(time, PATIENCE, PATIENCE + 1000);
    leave(&client);
    fetch_lock_release(&proxy.cache, name, lock);
}

/* A request waits as long as the fetch receives something, and no longer. */
static void check_slow(void **state)
{
    struct client client;
    int64_t time;
    int lock = lock_as_leader();

    (void)state;
    ask(&client);
    time = advance(&client, 30000, 500, 30000);
    assert_true(waits(&client));
    time = advance(&client, MOST, 500, 0);
    assert_true(has_asked(&client));
    assert_in_range(time, 29000 + PATIENCE, 31000 + PATIENCE);
    leave(&client);
    ask(&client); /* it does not wait for ever */
    time = advance(&client, 10 * MOST, 500, 10 * MOST);
    assert_true(has_asked(&client));
    assert_in_range(time, MOST, MOST + 1000);
    leave(&client);
    fetch_lock_release(&proxy.cache, name, lock);
}

/* One request fetches next when the fetching one releases its lock, or dies. */
static void check_successor(void **state)
{
    struct client clients[3];

    (void)state;
    for (int told = 0; told < 2; told++) {
        int lock = lock_as_leader(), asked = 0;
        for (int i = 0; i < 3; i++) {
            ask(&clients[i]);
            advance(&clients[i], 300, MOST, 0);
            assert_true(waits(&clients[i]));
        }
        if (told)
            fetch_lock_release(&proxy.cache, name, lock);
        else
            close(lock);
        for (int i = 0; i < 3; i++) {
            int64_t before = clients[i].call.now.milliseconds;
            int64_t time = advance(&clients[i], 1000, MOST, 0) + start.milliseconds - before;
            if (has_asked(&clients[i]))
                assert_true(time <= (told ? 0 : 250));
            asked += has_asked(&clients[i]);
        }
        assert_int_equal(asked, 1);
        for (int i = 0; i < 3; i++)
            leave(&clients[i]);
    }
}

static void check_stored(void **state)
{
    struct client client;
    int lock = lock_as_leader();

    (void)state;
    ask(&client);
    advance(&client, 300, MOST, 0);
    assert_true(waits(&client));
    store("Cache-Control: max-age=1000\r\n");
    fetch_lock_release(&proxy.cache, name, lock);
    assert_true(advance(&client, 1000, MOST, 0) < 600);
    assert_int_equal(client.progress, SERVICE_RESPONDS);
    leave(&client);
}

/* An origin that fails a fetch fails all requests that wait for it, whatever the failure. A later
 * request asks again. */
static void check_failed(void **state)
{
    static const int statuses[] = {502, 504};
    struct client clients[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        int lock = lock_as_leader();
        ask(&clients[0]);
        advance(&clients[0], 300, MOST, 0);
        fetch_lock_note_failure(&proxy.cache, name, statuses[i], clients[0].call.now.milliseconds);
        fetch_lock_release(&proxy.cache, name, lock);
        advance(&clients[0], 1000, MOST, 0);
        assert_int_equal(clients[0].progress, SERVICE_RESPONDS);
        assert_int_equal(clients[0].response.status, statuses[i]);
        leave(&clients[0]);
        ask(&clients[1]);
        assert_true(has_asked(&clients[1]));
        leave(&clients[1]);
        fetch_lock_note_failure(&proxy.cache, name, statuses[i], 1); /* long ago */
    }
}

/* Requests that must have an entry validated share an answer of the origin if they waited when it
 * came, and the question to it is at most a second older than they are. */
static void check_answered(void **state)
{
    static const struct {
        int64_t asked, came;
        bool shared;
    } rounds[] = {{-1000, 0, true}, {-1001, 0, false}, {-2, -1, false}};
    struct client client;

    (void)state;
    store("ETag: \"1\"\r\nCache-Control: no-cache\r\n");
    for (int i = 0; i < 3; i++) {
        int lock = lock_as_leader();
        ask(&client);
        assert_true(waits(&client));
        fetch_lock_note_answer(&proxy.cache, name, start.milliseconds + rounds[i].asked,
                               start.milliseconds + rounds[i].came);
        fetch_lock_release(&proxy.cache, name, lock);
        advance(&client, 1000, MOST, 0);
        assert_int_equal(has_asked(&client), !rounds[i].shared);
        assert_int_equal(client.progress, rounds[i].shared ? SERVICE_RESPONDS : SERVICE_WAITS);
        leave(&client);
    }
    ask(&client); /* it has not waited */
    assert_true(has_asked(&client));
    leave(&client);
}

/* Without locks no request waits. */
static void check_no_lock(void **state)
{
    struct client client;
    char command[96];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", path);
    assert_int_equal(system(command), 0);
    ask(&client);
    assert_true(has_asked(&client));
    leave(&client);
}

struct stale_case {
    const char *name; /* the fields of the stored response */
    bool waits;
};

static const struct stale_case stale[] = {
    {"ETag: \"1\"\r\nCache-Control: max-age=10\r\n", true},
    {"ETag: \"1\"\r\nCache-Control: max-age=10, must-revalidate\r\n", true},
    {"ETag: \"1\"\r\nCache-Control: max-age=0\r\n", true},
    {"ETag: \"1\"\r\nCache-Control: s-maxage=0, max-age=1000\r\n", true},
    {"ETag: \"1\"\r\nCache-Control: no-cache\r\n", true},
    {"ETag: \"1\"\r\nCache-Control: max-age=1000, no-cache\r\n", true},
    {"ETag: \"1\"\r\nExpires: 0\r\n", true},
    {"ETag: \"1\"\r\n", true},
    {"Cache-Control: max-age=10\r\n", true},
    {"Cache-Control: max-age=0\r\n", false},
    {"Cache-Control: s-maxage=0, max-age=1000\r\n", false},
    {"Cache-Control: no-cache\r\n", false},
    {"Cache-Control: max-age=1000, no-cache\r\n", false},
    {"Expires: 0\r\n", false},
    {"X: y\r\n", false},
};

/* One request asks for all if the origin can validate the entry, or its next response can be fresh.
 * Otherwise each request asks. */
static void check_stale(void **state)
{
    const struct stale_case *row = *state;
    struct client client;
    int lock;

    set_up(NULL);
    lock = lock_as_leader();
    store(row->name);
    ask(&client);
    assert_int_equal(waits(&client), row->waits);
    assert_int_equal(has_asked(&client), !row->waits);
    leave(&client);
    fetch_lock_release(&proxy.cache, name, lock);
    tear_down(NULL);
}

/* A client that does not read a stale response does not delay the requests of others, and is
 * disconnected in time. */
static void check_stalled(void **state)
{
    struct client client;
    int lock;

    (void)state;
    store("Cache-Control: max-age=10, stale-while-revalidate=1000\r\n");
    ask(&client);
    assert_int_equal(client.progress, SERVICE_WAITS);
    lock = lock_as_leader();
    fetch_lock_release(&proxy.cache, name, lock);
    assert_int_equal(client.call.deadline, start.milliseconds + context.write_timeout);
    client.call.now.milliseconds = client.call.deadline;
    assert_int_equal(service_proxy.expire(&client.call), SERVICE_FAILED);
    leave(&client);
    lock = lock_as_leader();
    fetch_lock_release(&proxy.cache, name, lock);
}

/* ---- news ---- */

/* Returns true if the process sleeps; *switches: how often it has begun to. */
static bool is_asleep(pid_t process, long *switches)
{
    char file_name[64], line[128], state = 0;
    FILE *file;

    snprintf(file_name, sizeof file_name, "/proc/%d/status", (int)process);
    file = fopen(file_name, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "voluntary_ctxt_switches: %ld", switches);
    }
    fclose(file);
    return state == 'S';
}

static long sleep_count(pid_t process)
{
    long switches = 0;

    while (!is_asleep(process, &switches))
        sched_yield();
    return switches;
}

static pid_t start_listener(void)
{
    pid_t process = fork();
    struct pollfd wait = {.events = POLLIN};

    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        wait.fd = fetch_wakeup_listen(&proxy.cache, name);
        _exit(poll(&wait, 1, -1) == 1 ? 0 : 1);
    }
    while (!fetch_wakeup_is_awaited(&proxy.cache, name))
        sched_yield();
    return process;
}

/* A process that waits sleeps until there is news, however many others come and go. */
static void check_sleep(void **state)
{
    pid_t process = start_listener();
    long before = sleep_count(process), after = before;
    int status;

    (void)state;
    for (int i = 0; i < 20; i++) {
        int other = fetch_wakeup_listen(&proxy.cache, name);
        assert_true(other >= 0);
        close(other);
        after = sleep_count(process);
    }
    assert_in_range(after - before, 0, 1); /* one: it had not come to poll() */
    fetch_wakeup_tell(&proxy.cache, name);
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
}

static bool is_told(int file)
{
    struct pollfd wait = {.fd = file, .events = POLLIN};

    return poll(&wait, 1, 0) == 1;
}

/* News are for those who wait when they are told, and for nobody who waits later, even while pipes
 * of much earlier news are open. */
static void check_news(void **state)
{
    int files[40];

    (void)state;
    for (int i = 0; i < 40; i++) {
        files[i] = fetch_wakeup_listen(&proxy.cache, name);
        assert_true(files[i] >= 0);
        assert_false(is_told(files[i]));
        assert_true(fetch_wakeup_is_awaited(&proxy.cache, name));
        fetch_wakeup_tell(&proxy.cache, name);
        assert_true(is_told(files[i]));
        assert_true(fetch_wakeup_is_awaited(&proxy.cache, name));
    }
    fetch_wakeup_tell(&proxy.cache, name); /* nobody waits */
    assert_false(fetch_wakeup_is_awaited(&proxy.cache, name));
    for (int i = 0; i < 40; i++)
        close(files[i]);
}

/* A file that is no pipe wakes nobody. */
static void check_no_pipe(void **state)
{
    char pipe[CACHE_NAME_SIZE];
    int file;

    (void)state;
    cache_name_news(pipe, cache_shared_slot(name), 0);
    file = openat(proxy.cache.directory, pipe, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fetch_wakeup_listen(&proxy.cache, name), -1);
    assert_int_equal(write(file, "x", 1), 1);
    assert_int_equal(fetch_wakeup_listen(&proxy.cache, name), -1);
    close(file);
}

struct crowd_case {
    const char *name;
    void (*check)(void **state);
};

static const struct crowd_case crowds[] = {
    {"a silent origin", check_silent},
    {"a slow fetch", check_slow},
    {"a successor", check_successor},
    {"the stored response is used", check_stored},
    {"a failure", check_failed},
    {"an answer", check_answered},
    {"no locks", check_no_lock},
    {"a client that does not read", check_stalled},
    {"news", check_news},
    {"a sleep until there is news", check_sleep},
    {"no pipe", check_no_pipe},
};

static void check_crowd(void **state)
{
    const struct crowd_case *row = *state;

    set_up(NULL);
    row->check(state);
    tear_down(NULL);
}

int main(void)
{
    UNIT_TABLE(crowds, check_crowd);
    UNIT_TABLE(stale, check_stale);
    return unit_run("crowd");
}
