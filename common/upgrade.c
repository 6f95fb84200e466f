/* Replaces a running server by a new one without losing a client. */
#include "common/upgrade.h"

#include "common/base/service_manager.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A new server that is not ready after this long can be given up for another one. */
#define PATIENCE_MILLISECONDS 60000

/* What a server tells the one behind it. */
enum answer { ANSWER_GO = 'g', ANSWER_STOP = 's' };

/* The kernel sends SIGIO when there is something to hear: the server, which waits for signals
 * wherever it waits, needs no further descriptor to wait for. */
static bool listen_to(int channel)
{
    return fcntl(channel, F_SETOWN, getpid()) == 0 &&
           fcntl(channel, F_SETFL, O_NONBLOCK | O_ASYNC) == 0;
}

static void leave(struct upgrade *upgrade, enum answer answer)
{
    send(upgrade->channel, &(char){(char)answer}, 1, MSG_NOSIGNAL);
    close(upgrade->channel);
    upgrade->channel = -1;
}

/* ---- the server before ---- */

static bool pass_all(struct server *server)
{
    bool good = handover_pass(server->upgrade.helper, &server->listener);

    for (int i = 0; good && i < server->twin_count; i++)
        good = handover_pass(server->upgrade.helper, &server->twins[i]);
    return good;
}

static void start(struct server *server)
{
    struct upgrade *upgrade = &server->upgrade;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        warn("cannot start a new server");
        return;
    }
    if (listen_to(ends[0]) && pass_all(server) && handover_start(upgrade->helper, ends[1])) {
        upgrade->channel = ends[0];
        upgrade->started = clock_now().milliseconds;
    } else {
        warn("cannot start a new server");
        close(ends[0]);
    }
    close(ends[1]);
}

void upgrade_begin(struct server *server)
{
    struct upgrade *upgrade = &server->upgrade;

    if (scoreboard_stopping(server->board))
        return;
    if (getpid() == 1) {
        warnx("no upgrade: when the first process of a container ends, the container does");
    } else if (upgrade->channel >= 0 &&
               clock_now().milliseconds - upgrade->started < PATIENCE_MILLISECONDS) {
        warnx("an upgrade is under way already");
    } else {
        upgrade_abandon(server);
        start(server);
    }
}

void upgrade_abandon(struct server *server)
{
    if (server->upgrade.channel >= 0)
        leave(&server->upgrade, ANSWER_STOP);
}

static void hand_over(struct server *server, pid_t process)
{
    char state[40];

    warnx("process %d has taken over", (int)process);
    snprintf(state, sizeof state, "MAINPID=%d", (int)process);
    service_manager_tell(server->service_manager, state);
    listener_hand_over(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_hand_over(&server->twins[i]);
    atomic_store(&server->board->handed_over, true);
}

static enum upgrade_event hear_report(struct server *server, const struct handover_report *report)
{
    if (report->process > 0) {
        leave(&server->upgrade, ANSWER_GO);
        hand_over(server, report->process);
        return UPGRADE_HANDED_OVER;
    }
    errno = report->error;
    warn("cannot start a new server: this one goes on");
    upgrade_abandon(server);
    return UPGRADE_NOTHING;
}

/* ---- the new server ---- */

static enum upgrade_event hear_answer(struct server *server, char answer)
{
    close(server->upgrade.channel);
    server->upgrade.channel = -1;
    if (answer != ANSWER_STOP)
        return UPGRADE_NOTHING;
    warnx("the server before this one was told to stop: so this one stops, too");
    return UPGRADE_STOP;
}

void upgrade_report(struct server *server)
{
    const struct handover_report report = {.process = getpid()};
    struct upgrade *upgrade = &server->upgrade;

    if (upgrade->channel < 0)
        return;
    upgrade->follows = true;
    upgrade->started = clock_now().milliseconds;
    listen_to(upgrade->channel);
    send(upgrade->channel, &report, sizeof report, MSG_NOSIGNAL);
    raise(SIGIO); /* the answer may have come before */
}

/* ---- both ---- */

/* If the server before this one died, this one goes on alone. */
enum upgrade_event upgrade_hear(struct server *server)
{
    struct upgrade *upgrade = &server->upgrade;
    struct handover_report report = {0};
    ssize_t length;

    if (upgrade->channel < 0)
        return UPGRADE_NOTHING;
    length = recv(upgrade->channel, &report, sizeof report, 0);
    if (length < 0 && errno == EAGAIN)
        return UPGRADE_NOTHING;
    if (upgrade->follows) {
        upgrade->follows = false;
        return hear_answer(server, length > 0 ? *(const char *)&report : ANSWER_GO);
    }
    if (length == (ssize_t)sizeof report)
        return hear_report(server, &report);
    warnx("the new server ended before it was ready: this one goes on");
    upgrade_abandon(server);
    return UPGRADE_NOTHING;
}

void upgrade_close(struct server *server)
{
    if (server->upgrade.helper >= 0)
        close(server->upgrade.helper);
    server->upgrade.helper = -1;
}
