/* Parses, looks up, compares and writes IPv4 and IPv6 addresses. */
#include "common/net/address.h"

#include <arpa/inet.h>
#include <string.h>

static bool read_port(struct text digits, uint16_t *port)
{
    uint64_t number;

    if (!text_number(digits, &number) || number == 0 || number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    return true;
}

bool address_split(struct text authority, uint16_t port, struct text *host, uint16_t *found)
{
    struct text rest = authority;
    size_t end;

    *found = port;
    if (rest.length > 0 && rest.data[0] == '[') {
        end = text_find(rest, ']');
        if (end == rest.length)
            return false;
        *host = (struct text){rest.data + 1, end - 1};
        rest = (struct text){rest.data + end + 1, rest.length - end - 1};
    } else {
        end = text_find(rest, ':');
        *host = (struct text){rest.data, end};
        rest = (struct text){rest.data + end, rest.length - end};
    }
    if (host->length == 0 || (rest.length > 0 && rest.data[0] != ':'))
        return false;
    if (rest.length <= 1) /* "host:" is legal, without a port */
        return port != 0;
    return read_port((struct text){rest.data + 1, rest.length - 1}, found);
}

/* Turns an IPv4-mapped IPv6 address into the IPv4 address. */
static void unmap(union address *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = address->v6.sin6_port};

    if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
        return;
    memcpy(&v4.sin_addr, address->v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
    address->v4 = v4;
}

bool address_read(struct text text, uint16_t port, union address *address)
{
    char name[INET6_ADDRSTRLEN];

    if (text.length == 0 || text.length >= sizeof name)
        return false;
    memcpy(name, text.data, text.length);
    name[text.length] = '\0';
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, name, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        return true;
    }
    if (inet_pton(AF_INET6, name, &address->v6.sin6_addr) != 1)
        return false;
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(port);
    unmap(address);
    return true;
}

void address_make(union address *address, const unsigned char *bytes, size_t size, uint16_t port)
{
    memset(address, 0, sizeof *address);
    if (size == sizeof address->v4.sin_addr) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        memcpy(&address->v4.sin_addr, bytes, size);
        return;
    }
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(port);
    memcpy(&address->v6.sin6_addr, bytes, sizeof address->v6.sin6_addr);
    unmap(address);
}

static void add(struct address_list *list, struct text text, uint16_t port)
{
    if (list->count < ADDRESS_LIST_LIMIT && address_read(text, port, &list->addresses[list->count]))
        list->count++;
}

/* Takes the next word off the line. */
static bool take_word(struct text *line, struct text *word)
{
    size_t length = 0;

    *line = text_trim(*line);
    while (length < line->length && line->data[length] != ' ' && line->data[length] != '\t')
        length++;
    *word = (struct text){line->data, length};
    line->data += length;
    line->length -= length;
    return length > 0;
}

/* Returns true if the line of a hosts file gives the host an address. */
static bool names(struct text line, struct text host, struct text *address)
{
    struct text word;

    line.length = text_find(line, '#');
    if (!take_word(&line, address))
        return false;
    while (take_word(&line, &word))
        if (text_same(word, host))
            return true;
    return false;
}

static bool is_localhost(struct text host)
{
    const struct text name = TEXT("localhost"), ending = TEXT(".localhost");

    return text_same(host, name) ||
           (host.length > ending.length &&
            text_same((struct text){host.data + host.length - ending.length, ending.length},
                      ending));
}

bool address_find(struct address_list *list, struct text hosts, struct text host, uint16_t port)
{
    struct text line, address;

    list->count = 0;
    add(list, host, port);
    if (list->count > 0)
        return true;
    if (host.length > 0 && host.data[host.length - 1] == '.')
        host.length--;
    if (is_localhost(host)) { /* the file is not asked (RFC 6761) */
        add(list, TEXT("127.0.0.1"), port);
        add(list, TEXT("::1"), port);
        return true;
    }
    while (text_line(&hosts, &line))
        if (names(line, host, &address))
            add(list, address, port);
    return list->count > 0;
}

void address_write(const union address *address, char *text, socklen_t size)
{
    if (address->any.sa_family == AF_INET)
        inet_ntop(AF_INET, &address->v4.sin_addr, text, size);
    else if (address->any.sa_family == AF_INET6)
        inet_ntop(AF_INET6, &address->v6.sin6_addr, text, size);
}

bool address_is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

bool address_is_any(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return address->v4.sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

/* The blocks of IPv4 that are not public (RFC 6890). The first that fits counts. */
static const struct block {
    uint32_t prefix;
    int bits;
    enum address_scope scope;
} blocks[] = {
    {0x00000000, 8, ADDRESS_LOCAL},    /* 0.0.0.0/8 */
    {0x7f000000, 8, ADDRESS_LOCAL},    /* 127.0.0.0/8 */
    {0xa9fe0000, 16, ADDRESS_LOCAL},   /* 169.254.0.0/16 */
    {0xe0000000, 3, ADDRESS_LOCAL},    /* 224.0.0.0 and up: multicast, reserved, broadcast */
    {0x0a000000, 8, ADDRESS_PRIVATE},  /* 10.0.0.0/8 */
    {0xac100000, 12, ADDRESS_PRIVATE}, /* 172.16.0.0/12 */
    {0xc0a80000, 16, ADDRESS_PRIVATE}, /* 192.168.0.0/16 */
    {0x64400000, 10, ADDRESS_PRIVATE}, /* 100.64.0.0/10 */
    {0xc6120000, 15, ADDRESS_PRIVATE}, /* 198.18.0.0/15 */
    {0xc0000000, 24, ADDRESS_PRIVATE}, /* 192.0.0.0/24 */
};

static enum address_scope scope_of_v4(uint32_t address)
{
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if ((address ^ blocks[i].prefix) >> (32 - blocks[i].bits) == 0)
            return blocks[i].scope;
    return ADDRESS_PUBLIC;
}

static uint32_t number_of(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Some IPv6 addresses lead to the IPv4 address that they hold. */
static enum address_scope scope_of_v6(const unsigned char *bytes)
{
    static const unsigned char translated[12] = {0, 0x64, 0xff, 0x9b}, zero[12];
    static const unsigned char translated_here[6] = {0, 0x64, 0xff, 0x9b, 0, 1};
    static const unsigned char stateless[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    static const unsigned char teredo[4] = {0x20, 0x01};

    if (memcmp(bytes, zero, sizeof zero) == 0) {
        uint32_t rest = number_of(bytes + 12);
        return rest <= 1 ? ADDRESS_LOCAL : scope_of_v4(rest); /* "::" and "::1" */
    }
    if (memcmp(bytes, translated, sizeof translated) == 0 ||
        memcmp(bytes, stateless, sizeof stateless) == 0)
        return scope_of_v4(number_of(bytes + 12));
    /* The network of their translator decides where these lead (RFC 8215, RFC 4380). */
    if (memcmp(bytes, translated_here, sizeof translated_here) == 0 ||
        memcmp(bytes, teredo, sizeof teredo) == 0)
        return ADDRESS_PRIVATE;
    if (bytes[0] == 0x20 && bytes[1] == 0x02) /* 6to4 */
        return scope_of_v4(number_of(bytes + 2));
    if (bytes[0] == 0xff || (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80))
        return ADDRESS_LOCAL;
    if ((bytes[0] & 0xfe) == 0xfc || (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0xc0))
        return ADDRESS_PRIVATE;
    return ADDRESS_PUBLIC;
}

enum address_scope address_scope(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return scope_of_v4(ntohl(address->v4.sin_addr.s_addr));
    return scope_of_v6(address->v6.sin6_addr.s6_addr);
}

uint16_t address_port(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohs(address->v4.sin_port);
    return address->any.sa_family == AF_INET6 ? ntohs(address->v6.sin6_port) : 0;
}

bool address_same(const union address *a, const union address *b)
{
    if (a->any.sa_family != b->any.sa_family || address_port(a) != address_port(b))
        return false;
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

socklen_t address_size(const union address *address)
{
    return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}
