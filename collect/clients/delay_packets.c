/* delay_packets: carries packets from one network namespace to another, some time later.
 *
 * usage:    delay_packets --into FILE MILLISECONDS
 * example:  collect/clients/delay_packets --into /proc/4711/ns/net 60
 *
 * It makes a TUN device in its own namespace, called delay-in, and one in the namespace of FILE,
 * called delay-out. A packet that is sent through the first one comes out of the second one so many
 * milliseconds later; nothing goes the other way. Whoever starts it gives the devices their
 * addresses and routes. Not every kernel has netem, which delays packets, too.
 *
 * It prints `ready` when both devices are there. A number on its standard input is a new delay; it
 * answers `ready` again. It ends with its standard input, and the devices with it. Then it prints
 *   carried dropped late latest
 * The first three count packets: how many were carried; how many were dropped, because QUEUE_MOST
 * were on their way, or the device refused them; and how many left more than 100 us late. The last
 * is the greatest lateness, in microseconds.
 */
#include "tool.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { QUEUE_MOST = 16384, PACKET_MOST = 2048, DELAY_MOST = 10000, LINE_BYTES = 32 };
static const int64_t SECOND = 1000000000, LATE = 100000; /* in nanoseconds, as all times here */

struct packet {
    int64_t due;
    ssize_t length;
    char bytes[PACKET_MOST];
};

/* The packets on their way: a ring, in the order in which they are due. */
struct road {
    struct packet *packets;
    int first, count;
    int from, into; /* the devices */
    int64_t delay, last_due, latest;
    long carried, dropped, late;
};

static int device_open(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

    if (device < 0)
        err(1, "cannot open /dev/net/tun");
    strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
    if (ioctl(device, TUNSETIFF, &request) < 0)
        err(1, "cannot make the device %s", name);
    return device;
}

/* A device stays in the namespace in which it was made. */
static int device_open_in(const char *path, const char *name)
{
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int other = open(path, O_RDONLY | O_CLOEXEC);

    if (own < 0 || other < 0 || setns(other, CLONE_NEWNET) < 0)
        err(1, "cannot enter the network namespace %s", path);
    int device = device_open(name);
    if (setns(own, CLONE_NEWNET) < 0)
        err(1, "cannot return to the network namespace");
    close(own);
    close(other);
    return device;
}

/* Takes the packets that have come. They leave in this order, also where the delay has become
 * shorter. */
static void take(struct road *road)
{
    static char spare[PACKET_MOST];

    for (;;) {
        bool is_full = road->count == QUEUE_MOST;
        struct packet *packet = &road->packets[(road->first + road->count) % QUEUE_MOST];
        ssize_t length = read(road->from, is_full ? spare : packet->bytes, PACKET_MOST);
        if (length <= 0)
            return;
        if (is_full) {
            road->dropped++;
            continue;
        }
        packet->length = length;
        packet->due = tool_nanoseconds() + road->delay;
        if (packet->due < road->last_due)
            packet->due = road->last_due;
        road->last_due = packet->due;
        road->count++;
    }
}

/* Sends the packets whose time has come. */
static void give(struct road *road)
{
    while (road->count > 0) {
        const struct packet *packet = &road->packets[road->first];
        int64_t over = tool_nanoseconds() - packet->due;
        if (over < 0)
            return;
        road->late += over > LATE;
        if (over > road->latest)
            road->latest = over;
        if (write(road->into, packet->bytes, (size_t)packet->length) == packet->length)
            road->carried++;
        else
            road->dropped++;
        road->first = (road->first + 1) % QUEUE_MOST;
        road->count--;
    }
}

static int64_t delay_of(const char *text)
{
    return tool_number(text, 0, DELAY_MOST, "the delay") * (SECOND / 1000);
}

/* Reads a new delay; false when there will be none. */
static bool listen_to(struct road *road)
{
    static char line[LINE_BYTES];
    static size_t length;
    ssize_t count = read(STDIN_FILENO, line + length, sizeof(line) - 1 - length);

    if (count <= 0)
        return count < 0 && errno == EINTR;
    length += (size_t)count;
    line[length] = '\0';
    char *end = strchr(line, '\n');
    if (end != NULL) {
        *end = '\0';
        road->delay = delay_of(line);
        length = 0;
        puts("ready");
        fflush(stdout);
    } else if (length == sizeof(line) - 1) {
        errx(2, "a delay is a number of milliseconds");
    }
    return true;
}

static void run(struct road *road)
{
    struct pollfd waits[] = {{.fd = road->from, .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};

    for (bool goes_on = true; goes_on;) {
        int64_t pause =
            road->count > 0 ? road->packets[road->first].due - tool_nanoseconds() : SECOND;
        if (pause < 0)
            pause = 0;
        struct timespec time = {pause / SECOND, pause % SECOND};
        if (ppoll(waits, 2, &time, NULL) < 0 && errno != EINTR)
            err(1, "poll");
        if (waits[0].revents != 0)
            take(road);
        give(road);
        if (waits[1].revents != 0)
            goes_on = listen_to(road);
        waits[0].revents = waits[1].revents = 0;
    }
}

int main(int count, char *arguments[])
{
    struct road road = {.count = 0};
    struct sched_param least = {.sched_priority = 1};

    if (count != 4 || strcmp(arguments[1], "--into") != 0) {
        bool is_help = count == 2 && !strcmp(arguments[1], "--help");
        fputs(
            "usage: delay_packets --into FILE MILLISECONDS\n"
            "Carries packets from the device delay-in here to the device delay-out in the network "
            "namespace of FILE, so much later.\n",
            is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    road.delay = delay_of(arguments[3]);
    road.packets = calloc(QUEUE_MOST, sizeof(*road.packets));
    if (road.packets == NULL)
        err(1, "cannot hold packets");
    road.from = device_open("delay-in");
    road.into = device_open_in(arguments[2], "delay-out");
    prctl(PR_SET_TIMERSLACK, 1);               /* it sleeps to the nanosecond */
    sched_setscheduler(0, SCHED_FIFO, &least); /* if allowed: packets wait for no other program */
    puts("ready");
    fflush(stdout);
    run(&road);
    printf("%ld %ld %ld %ld\n", road.carried, road.dropped, road.late, (long)(road.latest / 1000));
    free(road.packets);
    return 0;
}
