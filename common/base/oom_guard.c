/* Raises the scores by which the kernel chooses the process to end when memory runs out.
 *
 * The sandbox lets no child raise its own score, and a server that raised its own before each fork
 * would be chosen itself: most memory is taken by fork. So another process raises them. It may be
 * late for a child, as long as there are others with a raised score. */
#include "common/base/oom_guard.h"

#include "common/base/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A score, from -1000 to 1000, adds so many thousandths of all memory to the memory in use. */
#define RAISE 300
#define MOST  1000

static const char score_name[] = "oom_score_adj";

/* Reads a file of a folder of /proc; false if that fails. */
static bool read_text(int folder, const char *name, char *text, size_t size)
{
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, size - 1) : -1;

    if (file >= 0)
        close(file);
    if (length < 0)
        return false;
    text[length] = '\0';
    return true;
}

/* The line is "PROCESS (NAME) STATE PARENT ...". */
static bool is_child(int folder, pid_t parent)
{
    char line[256];
    const char *name_end;
    int found;

    if (!read_text(folder, "stat", line, sizeof line))
        return false;
    name_end = strrchr(line, ')');
    return name_end != NULL && sscanf(name_end, ") %*c %d", &found) == 1 && found == parent;
}

static void write_score(int folder, int score)
{
    int file = openat(folder, score_name, O_WRONLY | O_CLOEXEC);

    if (file < 0)
        return;
    dprintf(file, "%d", score);
    close(file);
}

/* The open folder stays that of the child, even if the child ends and its number is used again. */
static void raise_score(pid_t child, pid_t parent, int score)
{
    char path[32];
    int folder;

    snprintf(path, sizeof path, "/proc/%d", (int)child);
    folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    if (is_child(folder, parent))
        write_score(folder, score);
    close(folder);
}

static void give_up_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}};

    syscall(SYS_capset, &header, none);
}

/* Ends when all processes that can ask have ended. It has the score that the server began with. */
static void serve(int socket, const void *argument)
{
    const pid_t parent = *(const pid_t *)argument;
    char text[16] = "0";
    pid_t child;
    int score;

    give_up_capabilities();
    read_text(AT_FDCWD, "/proc/self/oom_score_adj", text, sizeof text);
    score = (int)strtol(text, NULL, 10) + RAISE;
    while (recv(socket, &child, sizeof child, 0) == (ssize_t)sizeof child)
        raise_score(child, parent, score < MOST ? score : MOST);
}

int oom_guard_open(void)
{
    const pid_t parent = getpid();
    int sockets[2];
    bool good;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return -1;
    good = helper_process_start("oom_guard", sockets[1], serve, &parent, HELPER_PROCESS_ONLY);
    close(sockets[1]);
    if (good)
        return sockets[0];
    close(sockets[0]);
    return -1;
}

void oom_guard_close(int guard)
{
    if (guard >= 0)
        close(guard);
}

void oom_guard_ask(int guard, pid_t child)
{
    int error = errno;

    if (guard >= 0)
        send(guard, &child, sizeof child, MSG_DONTWAIT | MSG_NOSIGNAL);
    errno = error;
}
