/* Looks a name up in a process of its own: name servers are slow, and may send anything. */
#include "common/net/name_lookup.h"

#include "common/base/clock.h"
#include "common/net/dns.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_PORT 53
/* How long a server may take, and how often it is asked. */
#define PATIENCE_MILLISECONDS 2000
#define TRIES                 2
/* Messages that answer no question of ours are dropped, up to so many. */
#define FOREIGN_LIMIT 32
/* Addresses are used for as long as the name server says, within these bounds. */
#define LEAST_SECONDS 1
#define MOST_SECONDS  300
/* If no name server answers, the name is looked up again after so long, and the last addresses are
 * used for so long. */
#define RETRY_SECONDS 5
#define STALE_SECONDS 3600
#define NAME_BYTES    256

/* The addresses, in memory that all processes share. The writer fills in the slot that is not
 * current, and then makes it so: a reader copies, and copies again if it was overtaken. A worker
 * that was taken over may have written anything there. */
struct found {
    _Atomic unsigned version;
    struct slot {
        struct address_list list;
        int64_t until; /* in monotonic milliseconds */
    } slots[2];
};

/* Each process has a copy. */
struct name_lookup {
    struct name_lookup_settings settings;
    char name[NAME_BYTES];
    int socket; /* to the process, which ends when it is closed everywhere */
    struct found *found;
};

/* ---- asking ---- */

/* One question to one name server. */
struct inquiry {
    const union address *server;
    struct dns_question question;
    unsigned char message[2 + DNS_MESSAGE_LIMIT]; /* over TCP its length comes first */
    size_t length;
    uint16_t port; /* of the addresses */
    uint32_t *seconds;
};

static bool await(int socket, short events, int64_t end)
{
    struct pollfd wait = {.fd = socket, .events = events};

    return poll(&wait, 1, clock_until(end, clock_now().milliseconds)) > 0;
}

static enum dns_outcome await_answer(const struct inquiry *inquiry, int socket,
                                     struct address_list *list)
{
    int64_t end = clock_now().milliseconds + PATIENCE_MILLISECONDS;
    unsigned char message[DNS_MESSAGE_LIMIT];

    for (int i = 0; i < FOREIGN_LIMIT && await(socket, POLLIN, end); i++) {
        ssize_t length = recv(socket, message, sizeof message, 0);
        enum dns_outcome outcome;
        if (length < 0)
            break;
        outcome = dns_read(&inquiry->question, message, (size_t)length, inquiry->port, list,
                           inquiry->seconds);
        if (outcome != DNS_FOREIGN)
            return outcome;
    }
    return DNS_FAILED;
}

/* A socket for each question has a port that nobody can guess, and hears the server only. */
static enum dns_outcome ask_by_datagram(const struct inquiry *inquiry, struct address_list *list)
{
    const union address *server = inquiry->server;
    int socket_ = socket(server->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    enum dns_outcome outcome = DNS_FAILED;

    if (socket_ < 0)
        return DNS_FAILED;
    if (connect(socket_, &server->any, address_size(server)) == 0 &&
        send(socket_, inquiry->message + 2, inquiry->length, 0) == (ssize_t)inquiry->length)
        outcome = await_answer(inquiry, socket_, list);
    close(socket_);
    return outcome;
}

static bool receive_whole(int socket, unsigned char *bytes, size_t size, int64_t end)
{
    while (size > 0) {
        ssize_t count = await(socket, POLLIN, end) ? recv(socket, bytes, size, 0) : -1;
        if (count <= 0)
            return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

/* Sends the question once the connection is made, and reads one answer. */
static enum dns_outcome converse(const struct inquiry *inquiry, int socket,
                                 struct address_list *list)
{
    int64_t end = clock_now().milliseconds + PATIENCE_MILLISECONDS;
    unsigned char length[2], message[DNS_STREAM_LIMIT];
    size_t whole = 2 + inquiry->length, size;

    if (!await(socket, POLLOUT, end) ||
        send(socket, inquiry->message, whole, MSG_NOSIGNAL) != (ssize_t)whole ||
        !receive_whole(socket, length, sizeof length, end))
        return DNS_FAILED;
    size = (size_t)length[0] << 8 | length[1];
    if (!receive_whole(socket, message, size, end))
        return DNS_FAILED;
    return dns_read(&inquiry->question, message, size, inquiry->port, list, inquiry->seconds);
}

static enum dns_outcome ask_by_stream(const struct inquiry *inquiry, struct address_list *list)
{
    const union address *server = inquiry->server;
    int socket_ = socket(server->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    enum dns_outcome outcome = DNS_FAILED;

    if (socket_ < 0)
        return DNS_FAILED;
    if (connect(socket_, &server->any, address_size(server)) == 0 || errno == EINPROGRESS)
        outcome = converse(inquiry, socket_, list);
    close(socket_);
    return outcome;
}

static bool write_question(struct inquiry *inquiry)
{
    uint16_t *number = &inquiry->question.number;

    if (getrandom(number, sizeof *number, 0) != sizeof *number)
        return false;
    inquiry->length = dns_ask(&inquiry->question, inquiry->message + 2);
    inquiry->message[0] = (unsigned char)(inquiry->length >> 8);
    inquiry->message[1] = (unsigned char)inquiry->length;
    return inquiry->length > 0;
}

/* Where the server cannot be asked over TCP, the beginning of its answer is used. */
static enum dns_outcome ask_server(const struct name_lookup_settings *settings,
                                   const union address *server, enum dns_type type,
                                   struct address_list *list, uint32_t *seconds)
{
    const struct address_list before = *list;
    struct address_list beginning;
    struct inquiry inquiry = {.server = server,
                              .question = {.name = settings->name, .type = type},
                              .port = settings->port,
                              .seconds = seconds};
    enum dns_outcome outcome;

    if (!write_question(&inquiry))
        return DNS_FAILED;
    outcome = ask_by_datagram(&inquiry, list);
    if (outcome != DNS_TRUNCATED)
        return outcome;
    beginning = *list;
    *list = before;
    outcome = ask_by_stream(&inquiry, list);
    if (outcome == DNS_ANSWERED || outcome == DNS_NO_NAME)
        return outcome;
    *list = beginning;
    return list->count > before.count ? DNS_ANSWERED : DNS_FAILED;
}

static enum dns_outcome ask(const struct name_lookup_settings *settings, enum dns_type type,
                            struct address_list *list, uint32_t *seconds)
{
    for (int i = 0; i < TRIES * settings->server_count; i++) {
        const union address *server = &settings->servers[i % settings->server_count];
        enum dns_outcome outcome = ask_server(settings, server, type, list, seconds);
        if (outcome != DNS_FAILED)
            return outcome;
    }
    return DNS_FAILED;
}

/* ---- the process ---- */

static void publish(struct found *found, const struct address_list *list, int64_t until)
{
    unsigned version = atomic_load(&found->version) + 1;

    found->slots[version & 1] = (struct slot){.list = *list, .until = until};
    atomic_store(&found->version, version);
}

/* Looks the name up once. Returns after how many seconds it must be looked up again. */
static uint32_t look_up(const struct name_lookup *lookup)
{
    struct address_list list = {.count = 0};
    uint32_t seconds = MOST_SECONDS;
    enum dns_outcome v4 = ask(&lookup->settings, DNS_IPV4, &list, &seconds);
    enum dns_outcome v6 = ask(&lookup->settings, DNS_IPV6, &list, &seconds);
    int64_t now = clock_now().milliseconds;

    if (v4 == DNS_FAILED && v6 == DNS_FAILED)
        return RETRY_SECONDS; /* the last addresses stay */
    if (list.count == 0 && (v4 == DNS_FAILED || v6 == DNS_FAILED))
        return RETRY_SECONDS;
    publish(lookup->found, &list, now + STALE_SECONDS * INT64_C(1000));
    if (list.count == 0)
        return RETRY_SECONDS;
    return seconds < LEAST_SECONDS ? LEAST_SECONDS : seconds;
}

struct look_up_task {
    const struct name_lookup *lookup;
    int socket;
};

/* Announces at the socket that the first look-up is over, with or without an answer. A process that
 * replaces this one does so, too, but nobody reads that. Nothing comes from the socket but its
 * end. */
static void look_up_often(const void *argument)
{
    const struct look_up_task *task = argument;
    struct pollfd wait = {.fd = task->socket, .events = POLLIN};
    uint32_t seconds;
    char done = 0;

    helper_process_confine(&task->lookup->settings.confinement, HELPER_PROCESS_WORKER);
    seconds = look_up(task->lookup);
    send(task->socket, &done, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (poll(&wait, 1, (int)seconds * 1000) == 0)
        seconds = look_up(task->lookup);
}

static void work(int socket, const void *argument)
{
    const struct look_up_task task = {argument, socket};

    helper_process_confine(&task.lookup->settings.confinement, HELPER_PROCESS_SUPERVISOR);
    helper_process_supervise(socket, &(struct helper_process_crew){
                                         .count = 1, .work = look_up_often, .argument = &task});
}

/* ---- opening ---- */

void name_lookup_read_servers(const char *path, struct name_lookup_settings *settings)
{
    FILE *file = fopen(path, "re");
    char line[256], word[64];

    while (file != NULL && settings->server_count < NAME_LOOKUP_SERVERS &&
           fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, " nameserver %63s", word) == 1 &&
            address_read(text_of(word), SERVER_PORT, &settings->servers[settings->server_count]))
            settings->server_count++;
    if (file != NULL)
        fclose(file);
}

static struct name_lookup *make(const struct name_lookup_settings *settings)
{
    const int access = PROT_READ | PROT_WRITE;
    struct name_lookup *lookup = MAP_FAILED;

    if (settings->name.length < sizeof lookup->name)
        lookup = mmap(NULL, sizeof *lookup, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lookup == MAP_FAILED)
        return NULL;
    lookup->found = mmap(NULL, sizeof *lookup->found, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lookup->found == MAP_FAILED) {
        munmap(lookup, sizeof *lookup);
        return NULL;
    }
    lookup->settings = *settings;
    memcpy(lookup->name, settings->name.data, settings->name.length);
    lookup->settings.name.data = lookup->name;
    lookup->socket = -1;
    return lookup;
}

static bool start(struct name_lookup *lookup)
{
    int ends[2];
    char done;
    bool started;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    lookup->socket = ends[0];
    started = helper_process_start("names", ends[1], work, lookup, HELPER_PROCESS_ONLY);
    close(ends[1]);
    return started && recv(ends[0], &done, 1, 0) == 1;
}

struct name_lookup *name_lookup_open(const struct name_lookup_settings *settings)
{
    struct name_lookup *lookup = make(settings);
    struct address_list list;

    if (lookup == NULL || !start(lookup)) {
        warn("cannot make a process that looks names up");
    } else if (name_lookup_find(lookup, clock_now().milliseconds, &list)) {
        return lookup;
    } else {
        warnx("the name '%.*s' is not known to %s", (int)settings->name.length, settings->name.data,
              settings->server_count > 0 ? "the name servers"
                                         : "this machine: it has no name server");
    }
    if (lookup != NULL)
        name_lookup_close(lookup);
    return NULL;
}

void name_lookup_close(struct name_lookup *lookup)
{
    if (lookup->socket >= 0)
        close(lookup->socket);
    munmap(lookup->found, sizeof *lookup->found);
    munmap(lookup, sizeof *lookup);
}

bool name_lookup_find(const struct name_lookup *lookup, int64_t now, struct address_list *list)
{
    const struct found *found = lookup->found;
    unsigned version = atomic_load(&found->version), before;
    int64_t until;

    do {
        before = version;
        *list = found->slots[version & 1].list;
        until = found->slots[version & 1].until;
        atomic_thread_fence(memory_order_acquire);
        version = atomic_load(&found->version);
    } while (version != before); /* the writer comes this way once a second at most */
    /* A worker that was taken over may have written anything there. */
    return list->count > 0 && list->count <= ADDRESS_LIST_LIMIT && now < until;
}
