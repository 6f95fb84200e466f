/* Handles the signals of a server, which arrive at a descriptor. */
#include "common/signals.h"

#include "common/base/service_manager.h"
#include "common/base/wakeup.h"
#include "common/net/tls.h"
#include "common/summary.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

static bool is_supervised(const struct server *server)
{
    return server->model->children != NULL && server->model->children->supervised;
}

/* Ignores the signals that mean nothing here and would end the server. A closed connection, or a
 * log file over the size limit, makes a write fail instead. */
static void ignore_others(void)
{
    static const int others[] = {SIGPIPE, SIGXFSZ, SIGUSR2,   SIGALRM, SIGVTALRM,
                                 SIGPROF, SIGIO,   SIGSTKFLT, SIGPWR};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        signal(others[i], SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
}

/* SIGHUP and SIGCHLD may have been ignored by the program that started this one. */
bool signals_open(struct server *server)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    if (is_supervised(server))
        sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGHUP);
    ignore_others();
    signal(SIGHUP, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    server->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    server->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server->wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return server->signals >= 0 && server->stop >= 0 && server->wakeup >= 0;
}

/* The first signal starts the grace time, the second one ends it. */
static void request_stop(struct server *server)
{
    struct scoreboard *board = server->board;
    int64_t now = clock_now().milliseconds, none = 0;

    if (!atomic_compare_exchange_strong(&board->stop_deadline, &none,
                                        now + server->options.stop_timeout))
        atomic_store(&board->stop_deadline, now - SIGNALS_GRACE_MARGIN);
    service_manager_tell(server->service_manager, "STOPPING=1");
    wakeup_ring(server->stop);
    wakeup_ring(server->wakeup);
}

/* A child that serves one connection sends no signal when it ends: waking up for each would cost
 * more than checking now and then. */
int signals_collect(struct server *server)
{
    const struct model_children *children = server->model->children;

    return children != NULL ? children->collect(server, false) : -1;
}

static void open_again(struct server *server)
{
    if (server->context.tls != NULL)
        tls_renew(server->context.tls);
    if (server->context.log != NULL)
        log_reopen(server->context.log);
}

void signals_handle(struct server *server)
{
    struct signalfd_siginfo signal;

    while (read(server->signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
        if (signal.ssi_signo == SIGINT || signal.ssi_signo == SIGTERM)
            request_stop(server);
        else if (signal.ssi_signo == SIGUSR1)
            summary_write(server, server->stats);
        else if (signal.ssi_signo == SIGCHLD)
            signals_collect(server);
        else if (signal.ssi_signo == SIGHUP)
            open_again(server);
    }
}
