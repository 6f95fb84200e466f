/* begin_at: runs a command from an agreed moment on, so that clients on several machines begin
 * together.
 *
 * usage:    begin_at MOMENT TIMEOUT COMMAND [ARGUMENT]...
 * example:  collect/clients/begin_at 1795500000.250000 60 ab -n 1000 http://192.0.2.1:7799/
 *
 * MOMENT is a time of this machine's wall clock, in seconds since 1970. A command that has not
 * ended TIMEOUT seconds later is ended. Its output stays as it is; behind it there is a line
 *   begin_at began seconds cpu ending
 * began    how many seconds after MOMENT the command was started
 * seconds  how long it ran
 * cpu      the CPU time of its processes, in seconds
 * ending   its exit status; 128 plus the number of the signal that ended it; `timeout`; or `late`:
 *          the moment had passed when begin_at was started, and the command was not run
 */
#include "tool.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double wall_clock(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void wait_for(double moment)
{
    struct timespec until = {.tv_sec = (time_t)moment,
                             .tv_nsec = (long)((moment - floor(moment)) * 1e9)};

    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void tell(double began, double seconds, const char *ending)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("\nbegin_at %.6f %.6f %.6f %s\n", began, seconds, cpu, ending);
}

/* Waits for the command. Returns true if it had to be ended. */
static bool wait_for_command(pid_t command, double timeout, int *status)
{
    double end = tool_now() + timeout;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (waitpid(command, status, WNOHANG) == 0) {
        double left = end - tool_now();
        if (left <= 0) {
            kill(command, SIGKILL);
            waitpid(command, status, 0);
            return true;
        }
        struct timespec wait = {.tv_sec = (time_t)left,
                                .tv_nsec = (long)((left - floor(left)) * 1e9)};
        sigtimedwait(&child, NULL, &wait);
    }
    return false;
}

int main(int count, char *arguments[])
{
    char text[16];
    int status;
    sigset_t child;

    if (count < 4) {
        fputs("usage: begin_at MOMENT TIMEOUT COMMAND [ARGUMENT]...\n", stderr);
        return 2;
    }
    double moment = tool_decimal(arguments[1], 0, 1e12, "MOMENT");
    double timeout = tool_decimal(arguments[2], 0, 1e9, "TIMEOUT");
    if (wall_clock() > moment) {
        tell(wall_clock() - moment, 0, "late");
        return 0;
    }
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    wait_for(moment);
    double began = wall_clock() - moment, start = tool_now();
    pid_t command = fork();
    if (command < 0)
        err(1, "fork");
    if (command == 0) {
        sigprocmask(SIG_UNBLOCK, &child, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(arguments[3], arguments + 3);
        err(127, "cannot run %s", arguments[3]);
    }
    bool late = wait_for_command(command, timeout, &status);
    snprintf(text, sizeof(text), "%d",
             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    tell(began, tool_now() - start, late ? "timeout" : text);
    return 0;
}
