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

uint16_t address_port(const union address *address)
{
    if (address->any.sa_family == AF_UNSPEC)
        return 0;
    return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
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
