/* Replaces a running server by a new one without losing a client. */
#include "common/upgrade.h"

#include "common/base/service_manager.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A new server that is not ready after this long can be given up for another one. */
#define PATIENCE_MILLISECONDS 60000

/* ---- opening ---- */

static void close_socket(int *socket)
{
    if (*socket >= 0)
        close(*socket);
    *socket = -1;
}

bool upgrade_open(struct server *server, char **argv)
{
    struct upgrade *upgrade = &server->upgrade;

    upgrade->given = listener_handover_take();
    upgrade->channel = upgrade->given.channel;
    upgrade->helper = listener_handover_open(argv);
    return upgrade->helper >= 0;
}

/* The kernel sends SIGIO when a message arrives: the server waits for signals wherever it waits,
 * and so needs no further descriptor to wait for. */
static bool listen_to(int socket)
{
    int on = 1;

    return fcntl(socket, F_SETOWN, getpid()) == 0 && ioctl(socket, FIOASYNC, &on) == 0;
}

bool upgrade_pass(struct server *server)
{
    const struct upgrade *upgrade = &server->upgrade;
    bool good = listen_to(upgrade->helper) &&
                (upgrade->channel < 0 || listen_to(upgrade->channel)) &&
                listener_handover_pass(upgrade->helper, &server->listener);

    for (int i = 0; good && i < server->twin_count; i++)
        good = listener_handover_pass(upgrade->helper, &server->twins[i]);
    return good;
}

/* ---- the server before ---- */

static bool tell(const struct server *server, enum listener_handover_kind kind)
{
    return listener_handover_send(
        server->upgrade.helper,
        &(struct listener_handover_message){.kind = kind, .number = server->upgrade.number});
}

void upgrade_begin(struct server *server)
{
    struct upgrade *upgrade = &server->upgrade;
    int64_t now = clock_now().milliseconds;

    if (server_stops(server))
        return;
    if (server->process == 1) {
        warnx("no upgrade: when the first process of a container ends, the container does");
    } else if (upgrade->pending && now - upgrade->started < PATIENCE_MILLISECONDS) {
        warnx("an upgrade is under way already");
    } else {
        upgrade->number++;
        upgrade->started = now;
        upgrade->pending = tell(server, LISTENER_HANDOVER_START);
        if (!upgrade->pending)
            warn("cannot start a new server");
    }
}

void upgrade_abandon(struct server *server)
{
    if (server->upgrade.pending)
        tell(server, LISTENER_HANDOVER_STOP);
    server->upgrade.pending = false;
}

/* From now on the sockets are those of another server, which alone may end them. */
static void let_go(struct server *server)
{
    listener_hand_over(&server->listener);
    for (int i = 0; i < server->twin_count; i++)
        listener_hand_over(&server->twins[i]);
    server->upgrade.handed_over = true;
    atomic_store(&server->board->handed_over, true);
}

static void hand_over(struct server *server, pid_t process)
{
    char state[40];

    tell(server, LISTENER_HANDOVER_GO);
    warnx("process %d has taken over", (int)process);
    snprintf(state, sizeof state, "MAINPID=%d", (int)process);
    service_manager_tell(server->service_manager, state);
    let_go(server);
}

/* Messages about a new server that was given up for another one are ignored. */
static bool hear_of_pending(struct upgrade *upgrade, struct listener_handover_message *message)
{
    do
        if (!listener_handover_receive(upgrade->helper, message, LISTENER_HANDOVER_FAILED))
            return false;
    while (message->number != upgrade->number &&
           (message->number != 0 || message->kind != LISTENER_HANDOVER_FAILED));
    return upgrade->pending;
}

static enum upgrade_event hear_helper(struct server *server)
{
    struct upgrade *upgrade = &server->upgrade;
    struct listener_handover_message message;

    if (!hear_of_pending(upgrade, &message))
        return UPGRADE_NOTHING;
    upgrade->pending = false;
    if (message.kind == LISTENER_HANDOVER_READY) {
        hand_over(server, message.process);
        return UPGRADE_HANDED_OVER;
    }
    errno = message.error;
    if (message.error != 0)
        warn("cannot start a new server: this one goes on");
    else
        warnx("the new server ended before it was ready: this one goes on");
    return UPGRADE_NOTHING;
}

/* ---- the new server ---- */

void upgrade_report(const struct server *server)
{
    const struct listener_handover_message ready = {.kind = LISTENER_HANDOVER_READY,
                                                    .process = server->process};

    if (server->upgrade.channel >= 0)
        listener_handover_send(server->upgrade.channel, &ready);
}

/* If the server before this one died, this one goes on alone. */
static enum upgrade_event hear_channel(struct server *server)
{
    struct upgrade *upgrade = &server->upgrade;
    struct listener_handover_message message;

    if (upgrade->channel < 0 ||
        !listener_handover_receive(upgrade->channel, &message, LISTENER_HANDOVER_GO))
        return UPGRADE_NOTHING;
    close_socket(&upgrade->channel);
    if (message.kind != LISTENER_HANDOVER_STOP)
        return UPGRADE_NOTHING;
    warnx("this server stops: the one before it does not hand over");
    let_go(server);
    return UPGRADE_HANDED_OVER;
}

enum upgrade_event upgrade_hear(struct server *server)
{
    enum upgrade_event event = hear_channel(server);

    return event == UPGRADE_NOTHING ? hear_helper(server) : event;
}

void upgrade_close(struct server *server)
{
    close_socket(&server->upgrade.helper);
}

void upgrade_leave(struct server *server)
{
    close_socket(&server->upgrade.helper);
    close_socket(&server->upgrade.channel);
}
