/* Messages of the Domain Name System (RFC 1035): questions for addresses, and their answers. Pure
 * functions. */
#ifndef COMMON_NET_DNS_H
#define COMMON_NET_DNS_H

#include "common/net/address.h"

/* The most bytes of a message: over UDP without extensions, and over TCP. */
#define DNS_MESSAGE_LIMIT 512
#define DNS_STREAM_LIMIT  65535

enum dns_type { DNS_IPV4 = 1, DNS_IPV6 = 28 };

struct dns_question {
    uint16_t number; /* which nobody can guess */
    struct text name;
    enum dns_type type;
};

enum dns_outcome {
    DNS_ANSWERED,
    DNS_TRUNCATED, /* the whole answer is longer than a datagram: ask over TCP */
    DNS_NO_NAME,   /* it has no address of this type, or does not exist */
    DNS_FAILED,    /* the name server cannot say */
    DNS_FOREIGN,   /* the message does not answer the question */
};

/* Writes the message that asks. Returns its length; 0 if there can be no such name. */
size_t dns_ask(const struct dns_question *question, unsigned char message[DNS_MESSAGE_LIMIT]);

/* Reads the answer, or as much of it as has come. If it is one, adds the addresses with this port
 * to the list, and lowers *seconds to how long they may be used. */
enum dns_outcome dns_read(const struct dns_question *question, const unsigned char *message,
                          size_t length, uint16_t port, struct address_list *list,
                          uint32_t *seconds);

#endif
