/* Takes sockets from a service manager such as systemd, and tells it the state of this process. */
#include "common/base/service_manager.h"

#include <err.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* LISTEN_PID tells whether the sockets are for this process, or for one that started it. */
int service_manager_sockets(void)
{
    const char *process = getenv("LISTEN_PID"), *sockets = getenv("LISTEN_FDS");

    if (process == NULL || sockets == NULL || strtol(process, NULL, 10) != getpid())
        return 0;
    return (int)strtol(sockets, NULL, 10);
}

/* A name that begins with '@' is in the abstract namespace. */
int service_manager_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = getenv("NOTIFY_SOCKET");
    size_t length = name != NULL ? strlen(name) : 0;
    int fd;

    if (length < 2 || length >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address,
                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
        return fd;
    warn("cannot reach the service manager at '%s'", name);
    if (fd >= 0)
        close(fd);
    return -1;
}

void service_manager_tell(int socket, const char *state)
{
    if (socket >= 0 && send(socket, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        warn("cannot tell the service manager '%s'", state);
}
