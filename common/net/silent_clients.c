/* Finds clients that the kernel holds back, by asking it for its connections (sock_diag). */
#include "common/net/silent_clients.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATES (1 << 3) /* SYN-RECV: this state lasts until the connection may be accepted */

static bool ask(int kernel, sa_family_t family, uint16_t port)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 request;
    } message = {
        .head = {.nlmsg_len = sizeof message,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .request = {.sdiag_family = (uint8_t)family,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_states = STATES,
                    .id.idiag_sport = htons(port)},
    };

    return send(kernel, &message, sizeof message, 0) == (ssize_t)sizeof message;
}

/* The first message tells: the description of a connection, an error, or the end of the list. */
static bool has_one(int kernel, sa_family_t family, uint16_t port)
{
    struct nlmsghdr first;

    return ask(kernel, family, port) &&
           recv(kernel, &first, sizeof first, MSG_DONTWAIT) == (ssize_t)sizeof first &&
           first.nlmsg_type == SOCK_DIAG_BY_FAMILY;
}

bool silent_clients_exist(uint16_t port)
{
    const sa_family_t families[] = {AF_INET, AF_INET6};
    bool found = false;

    for (int i = 0; i < 2 && !found; i++) {
        int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
        found = kernel >= 0 && has_one(kernel, families[i], port);
        close(kernel);
    }
    return found;
}
