/* Starts a process that keeps the rights which its maker gives up. */
#include "common/base/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A process that dies is replaced after this long: the next might die at once. */
#define REPLACE_NANOSECONDS 10000000

/* All signals are blocked, those of the terminal, too: the process ends when its maker does. */
static int prepare(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = STDIN_FILENO; null >= 0 && i <= STDERR_FILENO; i++)
        dup2(null, i); /* a reader of the maker's output must not wait for this process */
    if (socket != STDERR_FILENO + 1)
        dup2(socket, STDERR_FILENO + 1);
    close_range(STDERR_FILENO + 2, ~0U, 0);
    return STDERR_FILENO + 1;
}

/* Forks twice: the maker reaps and counts all of its own children. */
bool helper_process_start(const char *name, int socket,
                          void (*work)(int socket, const void *argument), const void *argument,
                          enum helper_process_programs programs)
{
    pid_t child = fork();
    int status;

    if (child < 0)
        return false;
    if (child > 0)
        return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (programs == HELPER_PROCESS_ONLY)
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_NAME, name, 0, 0, 0);
    child = fork();
    if (child == 0)
        work(prepare(socket), argument);
    _exit(child < 0);
}

void helper_process_confine(const struct helper_process_confinement *confinement,
                            enum helper_process_role role)
{
    if (confinement->enter != NULL)
        confinement->enter(role, confinement->argument);
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = REPLACE_NANOSECONDS}, NULL);
}

/* If there is no memory for a process now, there may be some later. */
static void make_worker(const struct helper_process_crew *crew)
{
    pid_t child;

    while ((child = fork()) < 0)
        pause_briefly();
    if (child > 0)
        return;
    crew->work(crew->argument);
    _exit(0);
}

static bool is_over(int socket)
{
    struct pollfd peer = {.fd = socket};

    return poll(&peer, 1, 0) == 1 && (peer.revents & POLLHUP);
}

void helper_process_supervise(int socket, const struct helper_process_crew *crew)
{
    int living = crew->count, status;
    pid_t process;

    for (int i = 0; i < crew->count; i++)
        make_worker(crew);
    while (living > 0 && (process = wait(&status)) > 0) {
        if (WIFEXITED(status) || is_over(socket)) {
            living--;
            continue;
        }
        if (crew->died != NULL)
            crew->died(crew->argument, process);
        pause_briefly();
        make_worker(crew);
    }
}
