/* Handles the signals of a server, which arrive at a descriptor. */
#include "common/signals.h"

#include "common/base/service_manager.h"
#include "common/base/wakeup.h"
#include "common/net/tls.h"
#include "common/summary.h"
#include "common/upgrade.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* So long after the end of a stop's time this process ends, whatever it waits for. */
#define OVERDUE_MILLISECONDS 10000

/* Ignores the signals that mean nothing here and would end the server. A closed connection, or a
 * log file over the size limit, makes a write fail instead. */
static void ignore_others(void)
{
    static const int others[] = {SIGPIPE, SIGXFSZ, SIGVTALRM, SIGPROF, SIGSTKFLT, SIGPWR};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        signal(others[i], SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
}

static void hear_call(int number)
{
    (void)number; /* that the wait ends is enough */
}

/* Ends the process, but not by SIGKILL, which the kernel keeps from the first process of a
 * container. */
static void die(int number, siginfo_t *about, void *context)
{
    (void)number;
    (void)context;
    if (about->si_code == SI_TIMER)
        _exit(1); /* without a word: a worker can have a write wait, too */
}

static void install_handlers(void)
{
    struct sigaction call = {.sa_handler = hear_call};
    struct sigaction death = {.sa_sigaction = die, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t deadly;

    sigaction(SEATS_SIGNAL, &call, NULL);
    sigaction(SIGALRM, &death, NULL);
    sigemptyset(&deadly);
    sigaddset(&deadly, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &deadly, NULL);
}

/* The program that started this one may have ignored or blocked some of them. */
bool signals_open(struct server *server)
{
    static const int handled[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGIO, SIGCHLD};
    struct sigevent death = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        if (handled[i] != SIGCHLD || server->model->served_by == BY_WORKER_PROCESS)
            sigaddset(&set, handled[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        signal(handled[i], SIG_DFL);
    ignore_others();
    install_handlers();
    server->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    sigemptyset(&set);
    sigaddset(&set, SEATS_SIGNAL);
    sigprocmask(SIG_BLOCK, &set, &server->waking);
    sigdelset(&server->waking, SEATS_SIGNAL);
    server->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server->wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return server->signals >= 0 && server->stop >= 0 && server->wakeup >= 0 &&
           timer_create(CLOCK_MONOTONIC, &death, &server->death) == 0;
}

/* 0: never. */
static void set_death(struct server *server, int64_t milliseconds)
{
    const struct itimerspec time = {
        .it_value = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L}};

    timer_settime(server->death, 0, &time, NULL);
}

void signals_stopped(struct server *server)
{
    set_death(server, 0);
}

/* A worker can make a call of this process wait for ever, by the descriptors and the memory that
 * they share. So a timer ends this process if it has not ended itself by then. */
static void set_deadline(struct server *server, int64_t deadline)
{
    set_death(server, deadline + OVERDUE_MILLISECONDS - clock_now().milliseconds);
    atomic_store(&server->deadline, deadline);
    atomic_store(&server->board->stop_deadline, deadline);
    wakeup_ring(server->stop);
    wakeup_ring(server->wakeup);
}

/* The first signal starts the grace time, the second one ends it. A server that has handed over
 * stops already, and is not the one that the service manager asks about. Nothing that workers can
 * write to is read here: none can keep a signal from ending the server. */
static void request_stop(struct server *server)
{
    int64_t now = clock_now().milliseconds;

    if (server->upgrade.handed_over && !server->upgrade.stopped) {
        server->upgrade.stopped = true;
        return;
    }
    if (atomic_load(&server->deadline) != 0) {
        set_deadline(server, now - SIGNALS_GRACE_MARGIN);
        return;
    }
    upgrade_abandon(server);
    service_manager_tell(server->service_manager, "STOPPING=1");
    set_deadline(server, now + server->options.stop_timeout);
}

/* A stop that a signal has requested before goes on. */
static void hear(struct server *server)
{
    if (upgrade_hear(server) != UPGRADE_HANDED_OVER)
        return;
    if (atomic_load(&server->deadline) != 0)
        server->upgrade.stopped = true;
    else
        set_deadline(server, clock_now().milliseconds + server->options.stop_timeout);
}

/* SIGCHLD of children that serve one connection is not handled: waking up for each would cost more
 * than checking now and then. */
int signals_collect(struct server *server)
{
    const struct model_children *children = server->model->children;

    return children != NULL ? children->collect(server, false) : -1;
}

static void open_again(struct server *server)
{
    atomic_fetch_add(&server->board->reloads, 1);
    if (server->context.tls != NULL)
        tls_renew(server->context.tls);
    if (server->context.log != NULL)
        access_log_reopen(server->context.log);
}

/* A message may have come before SIGIO was asked for. */
void signals_ready(struct server *server)
{
    upgrade_report(server);
    hear(server);
}

/* Somebody wants a new server, or a part of this one does. */
static void replace(struct server *server)
{
    services_explain_upgrade(&server->services, &server->options);
    hear(server); /* of the last one, if it has just ended */
    upgrade_begin(server);
}

static void handle(struct server *server, uint32_t signal)
{
    if (signal == SIGINT || signal == SIGTERM)
        request_stop(server);
    else if (signal == SIGUSR1)
        summary_write(server, server->stats);
    else if (signal == SIGUSR2)
        replace(server);
    else if (signal == SIGIO)
        hear(server);
    else if (signal == SIGCHLD)
        signals_collect(server);
    else if (signal == SIGHUP)
        open_again(server);
}

/* Reads once, since there are signals: a worker could make a second read block. */
void signals_handle(struct server *server)
{
    struct signalfd_siginfo signals[8];
    ssize_t size = read(server->signals, signals, sizeof signals);

    for (ssize_t i = 0; i < size / (ssize_t)sizeof signals[0]; i++)
        handle(server, signals[i].ssi_signo);
}
