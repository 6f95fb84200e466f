/* Tests of datagram.c: how long a response may be, and that a long request arrives whole. */
#include "common/net/datagram.h"

#include "tests/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct room_case {
    const char *name; /* the address */
    size_t request, room;
};

static const struct room_case rooms[] = {
    {"127.0.0.1", 18, DATAGRAM_RESPONSE_LIMIT},
    {"127.255.255.254", 18, DATAGRAM_RESPONSE_LIMIT},
    {"::1", 18, DATAGRAM_RESPONSE_LIMIT},
    {"128.0.0.1", 18, 54},
    {"126.255.255.255", 100, 300},
    {"192.0.2.1", 0, 0},
    {"192.0.2.1", 21835, 65505},
    {"192.0.2.1", 21836, DATAGRAM_RESPONSE_LIMIT},
    {"192.0.2.1", DATAGRAM_REQUEST_LIMIT, DATAGRAM_RESPONSE_LIMIT},
    {"::2", 18, 54},
    {"fe80::1", 18, 54},
    {"2001:db8::1", 18, 54},
};

static void check_room(void **state)
{
    const struct room_case *row = *state;
    union address address = {0};

    if (inet_pton(AF_INET, row->name, &address.v4.sin_addr) == 1)
        address.v4.sin_family = AF_INET;
    else if (inet_pton(AF_INET6, row->name, &address.v6.sin6_addr) == 1)
        address.v6.sin6_family = AF_INET6;
    assert_int_equal(datagram_room(&address, row->request), row->room);
}

/* Sends itself a datagram, receives and takes it; returns its length, or 0 if it is not whole. */
static size_t pass_datagram(size_t length)
{
    static char request[DATAGRAM_REQUEST_LIMIT];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int socket_ = socket(AF_INET, SOCK_DGRAM, 0), descriptor;
    struct datagram *datagram;
    size_t whole = 0;

    memset(request, 'x', length);
    if (bind(socket_, (struct sockaddr *)&address, size) < 0 ||
        getsockname(socket_, (struct sockaddr *)&address, &size) < 0 ||
        sendto(socket_, request, length, 0, (struct sockaddr *)&address, size) != (ssize_t)length)
        return 0;
    descriptor = datagram_receive(socket_);
    datagram = datagram_is(descriptor) ? datagram_take(descriptor) : NULL;
    if (datagram != NULL && datagram->envelope.length == length &&
        memcmp(datagram->request, request, length) == 0)
        whole = length;
    datagram_free(datagram);
    close(descriptor);
    close(socket_);
    return whole;
}

static void check_whole(void **state)
{
    (void)state;
    assert_int_equal(pass_datagram(100), 100);
    assert_int_equal(pass_datagram(DATAGRAM_REQUEST_LIMIT), DATAGRAM_REQUEST_LIMIT);
}

/* Takes pipes until this user gets small ones only. Returns true if that came to be. */
static bool use_up_pipes(void)
{
    int ends[2];

    for (int i = 0; i < 20000 && pipe(ends) == 0; i++)
        if (fcntl(ends[0], F_GETPIPE_SZ) < DATAGRAM_REQUEST_LIMIT)
            return true;
    return false;
}

/* The status of a process that receives a long datagram when its user gets small pipes only. */
enum { WHOLE, DAMAGED, NO_SMALL_PIPES };

static int receive_with_small_pipes(void)
{
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if ((geteuid() == 0 && setuid(65534) < 0) || !use_up_pipes())
        return NO_SMALL_PIPES;
    return pass_datagram(DATAGRAM_REQUEST_LIMIT) == DATAGRAM_REQUEST_LIMIT ? WHOLE : DAMAGED;
}

static void check_small_pipes(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(receive_with_small_pipes());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_SMALL_PIPES)
        UNIT_SKIP("pipes are not small here");
    assert_int_equal(WEXITSTATUS(status), WHOLE);
}

int main(void)
{
    UNIT_TABLE(rooms, check_room);
    unit_add("a datagram arrives whole", check_whole, NULL);
    unit_add("a long datagram arrives whole where the user has too many pipes", check_small_pipes,
             NULL);
    return unit_run("datagram");
}
