/* Makes worker processes, and replaces those that die. */
#include "common/workers/process_crew.h"

#include "common/acceptor.h"
#include "common/base/oom_guard.h"
#include "common/net/tls.h"
#include "common/workers/listen_permits.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A process that lives shorter than this, and has accepted nothing, has failed at its start. If it
 * fails again, its replacement starts after a delay, which doubles with each further failure. One
 * that dies of a connection is replaced at once: others must not wait for it. */
#define SHORT_LIFE_MILLISECONDS  1000
#define FIRST_DELAY_MILLISECONDS 100
#define MOST_DELAY_MILLISECONDS  10000

struct member {
    pid_t process; /* 0: none */
    int64_t started;
    uint64_t connections; /* in its slot when it started */
    int64_t due;          /* when its replacement starts */
    int failures;         /* failed starts in a row */
};

struct process_crew {
    void (*work)(struct worker *worker);
    struct process_crew_calls calls;
    struct member members[];
};

static void free_crew(struct server *server)
{
    free(server->process_crew);
    server->process_crew = NULL;
}

/* The parent may have died before this child was tied to it: then the child does no work. */
static void live(struct server *server, int number)
{
    struct worker worker;

    server_child(server);
    if (server->context.tls != NULL)
        tls_begin_worker(server->context.tls);
    worker = worker_begin(server, number);
    if (getppid() == server->process)
        server->process_crew->work(&worker);
    worker_end(&worker);
    free_crew(server);
    server_child_ends(server);
    _exit(0);
}

static bool start(struct server *server, int number)
{
    struct member *member = &server->process_crew->members[number];
    pid_t process;

    member->connections = atomic_load(&server->board->slots[number].connections);
    process = fork();
    if (process < 0)
        return false;
    if (process == 0)
        live(server, number);
    server_worker_began(server);
    oom_guard_ask(server->memory.oom_guard, process);
    member->process = process;
    member->started = clock_now().milliseconds;
    return true;
}

/* If one fails, those that were made end with the server. */
static bool start_all(struct server *server)
{
    if (server->process_crew == NULL)
        return false;
    for (int i = 0; i < server->options.workers; i++)
        if (!start(server, i))
            return false;
    return true;
}

bool process_crew_start(struct server *server, void (*work)(struct worker *worker),
                        const struct process_crew_calls *calls)
{
    size_t workers = (size_t)server->options.workers;
    struct process_crew *crew = calloc(1, sizeof *crew + workers * sizeof crew->members[0]);

    server->process_crew = crew;
    if (crew != NULL) {
        crew->work = work;
        if (calls != NULL)
            crew->calls = *calls;
    }
    if (start_all(server)) {
        server_ready(server);
        return true;
    }
    warn("cannot make %zu processes", workers);
    server->exit_status = 1;
    return false;
}

static int delay_after(int failures)
{
    int delay = FIRST_DELAY_MILLISECONDS;

    for (int i = 1; i < failures && delay < MOST_DELAY_MILLISECONDS; i++)
        delay *= 2;
    return delay < MOST_DELAY_MILLISECONDS ? delay : MOST_DELAY_MILLISECONDS;
}

/* A replacement starts after the delay; -1: there is none. */
static void report_death(int number, pid_t process, int status, int delay)
{
    char how[40], when[60];

    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
    if (delay < 0)
        snprintf(when, sizeof when, "the server is stopping");
    else if (delay == 0)
        snprintf(when, sizeof when, "another one replaces it");
    else
        snprintf(when, sizeof when, "it keeps dying: the next try is in %.1f s", delay / 1000.0);
    warnx("worker %d (process %d) %s; %s", number, (int)process, how, when);
}

/* Returns true if a connection was passed to the worker, and it has not taken it. */
static bool has_pending(const struct server *server, int number)
{
    const struct process_crew *crew = server->process_crew;

    return crew->calls.is_pending != NULL && atomic_load(&server->board->slots[number].assigned) &&
           crew->calls.is_pending(number);
}

/* Returns how many connections a dead worker had. It could write any number there. */
static int64_t take_active(const struct server *server, struct scoreboard_slot *slot)
{
    int64_t active = atomic_exchange(&slot->active, 0), most = (int64_t)server->limit;

    return active < 0 ? 0 : active > most ? most : active;
}

/* Counts off the connections that a dead worker had. One that is still pending is kept for its
 * replacement; one that it had taken without counting it is counted off as well. */
static void end_connections(struct server *server, int number)
{
    struct scoreboard_slot *slot = &server->board->slots[number];
    int64_t lost = take_active(server, slot);
    bool assigned = atomic_load(&slot->assigned), kept = has_pending(server, number);

    if (lost == 0 && assigned && !kept)
        lost = 1;
    if (!kept)
        worker_lost_seats(server, number);
    for (int64_t i = 0; i < lost; i++)
        server_left(server);
    if (!kept)
        atomic_store(&slot->assigned, false);
}

static bool has_failed_at_start(const struct server *server, int number, int64_t now)
{
    const struct member *member = &server->process_crew->members[number];

    return now - member->started < SHORT_LIFE_MILLISECONDS &&
           atomic_load(&server->board->slots[number].connections) == member->connections;
}

static void restore_listeners(const struct server *server)
{
    listener_restore(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_restore(&server->twins[i]);
}

/* Reports a death, unless the worker ended well at a stop. */
static void end_member(struct server *server, int number, int status)
{
    struct member *member = &server->process_crew->members[number];
    int64_t now = clock_now().milliseconds;
    bool stopping = server_stops(server), regular = status == 0 && stopping;

    server_worker_ended(server);
    if (server->options.accept == ACCEPT_FEW)
        listen_permits_return(server, number);
    end_connections(server, number);
    member->failures = has_failed_at_start(server, number, now) ? member->failures + 1 : 0;
    member->due = now + (member->failures > 1 ? delay_after(member->failures - 1) : 0);
    if (!stopping)
        restore_listeners(server);
    if (!regular) {
        trace_died(server->context.trace, member->process);
        report_death(number, member->process, status, stopping ? -1 : (int)(member->due - now));
    }
    if (server->process_crew->calls.bury != NULL)
        server->process_crew->calls.bury(member->process);
    member->process = 0;
}

bool process_crew_lives(const struct server *server, int number)
{
    return server->process_crew->members[number].process != 0;
}

static int number_of(const struct server *server, pid_t process)
{
    for (int i = 0; i < server->options.workers; i++)
        if (server->process_crew->members[i].process == process)
            return i;
    return -1;
}

/* At a stop only a connection that is pending needs another worker. */
static bool needs_worker(const struct server *server, int number)
{
    if (server->process_crew->members[number].process != 0)
        return false;
    return !server_stops(server) || (has_pending(server, number) && !acceptor_is_over(server, 0));
}

/* Starts the replacements that are due. Returns after how many milliseconds the next one is; -1 if
 * none is needed. */
static int replace(struct server *server)
{
    int64_t now = clock_now().milliseconds, soonest = -1;

    for (int i = 0; i < server->options.workers; i++) {
        struct member *member = &server->process_crew->members[i];
        if (!needs_worker(server, i))
            continue;
        if (member->due <= now && !start(server, i)) {
            warn("cannot make a process for worker %d; will try again", i);
            member->due = now + SHORT_LIFE_MILLISECONDS;
        }
        if (member->process == 0 && (soonest < 0 || member->due - now < soonest))
            soonest = member->due - now;
    }
    return (int)soonest;
}

/* At the end there is no worker left to wait for: workers count until they have been reaped. An
 * orphan that this process has adopted is reaped, too. */
static int collect(struct server *server, bool ending)
{
    pid_t process;
    int status;

    if (server->process_crew == NULL)
        return -1;
    while ((process = waitpid(-1, &status, WNOHANG)) > 0) {
        int number = number_of(server, process);
        if (number >= 0)
            end_member(server, number, status);
    }
    return ending ? -1 : replace(server);
}

static double cpu_seconds(const struct server *server)
{
    double seconds = 0;

    for (int i = 0; server->process_crew != NULL && i < server->options.workers; i++) {
        pid_t process = server->process_crew->members[i].process;
        struct timespec time;
        clockid_t clock;
        if (process != 0 && clock_getcpuclockid(process, &clock) == 0 &&
            clock_gettime(clock, &time) == 0)
            seconds += (double)time.tv_sec + (double)time.tv_nsec / 1e9;
    }
    return seconds;
}

const struct model_children process_crew_children = {
    .collect = collect,
    .cpu_seconds = cpu_seconds,
    .free = free_crew,
};
